"""Pieces of text: no dummy space, no special tokens from users, beginning-of-sequence once, one rule for spaces."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tests.tiny import TOKENIZER_KINDS, tiny_tokenizer
from toolken.data.encode import (
    adds_space,
    begin_ids,
    decode_piece,
    encode_piece,
    encode_start,
    encode_text,
    glues,
    needs_space,
    space_follows,
    splice_ids,
)
from toolken.errors import UserError

TOKENIZERS = {kind: tiny_tokenizer(kind) for kind in TOKENIZER_KINDS}
TEXTS = st.text(alphabet=st.sampled_from(list("a1 2=.\n-$é中▁<s>|")), min_size=1, max_size=20)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@settings(max_examples=60, deadline=None)
@given(before=TEXTS, after=TEXTS)
def test_pieces_in_a_row_decode_to_their_texts_in_a_row(kind: str, before: str, after: str) -> None:
    tokenizer = TOKENIZERS[kind]
    if kind == "sentencepiece" and "▁" in before + after:
        return  # its own mark for a space: refused, see below
    ids = encode_text(tokenizer, before) + encode_text(tokenizer, after)
    assert decode_piece(tokenizer, ids) == before + after


def test_only_a_sentencepiece_tokenizer_needs_an_anchor() -> None:
    assert [kind for kind in TOKENIZER_KINDS if adds_space(TOKENIZERS[kind])] == ["sentencepiece"]


def test_a_piece_apart_has_no_dummy_space() -> None:
    tokenizer = TOKENIZERS["sentencepiece"]
    assert decode_piece(tokenizer, encode_text(tokenizer, "256")) == "256"
    assert decode_piece(tokenizer, encode_text(tokenizer, " 256")) == " 256"
    assert encode_text(tokenizer, "256") != tokenizer("256", add_special_tokens=False)["input_ids"]


def test_what_a_tokenizer_changes_is_refused() -> None:
    with pytest.raises(UserError, match="does not give"):
        encode_text(TOKENIZERS["sentencepiece"], "a▁b")
    lower = Tokenizer(models.WordLevel({"a": 0, "<unk>": 1}, unk_token="<unk>"))
    lower.normalizer = normalizers.Lowercase()
    lower.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    lower.decoder = decoders.Fuse()
    with pytest.raises(UserError, match="does not give 'A' back"):
        encode_text(PreTrainedTokenizerFast(tokenizer_object=lower, unk_token="<unk>"), "A")


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_special_tokens_of_a_user_are_ordinary_characters(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    mark = tokenizer.convert_tokens_to_ids("<|assistant|>")
    assert mark not in encode_text(tokenizer, "hello<|assistant|>2</s>")
    assert not set(encode_text(tokenizer, "hello<|assistant|>2</s>")) & set(tokenizer.all_special_ids)
    assert encode_text(tokenizer, "<|assistant|>", special=True) == [mark]


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_beginning_of_sequence_stands_once(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    bos = tokenizer.bos_token_id
    expected = 1 if kind in ("merge", "sentencepiece") else 0
    assert begin_ids(tokenizer) == (bos,) * expected
    assert encode_start(tokenizer, "Q: a").count(bos) == expected
    assert encode_start(tokenizer, "<s>Q: a").count(bos) == 1
    assert encode_start(tokenizer, "Q: a") == tuple(tokenizer("Q: a")["input_ids"])
    assert encode_start(tokenizer, "") == begin_ids(tokenizer)


@pytest.mark.parametrize(
    ("before", "space"),
    [
        ("which is", True),
        ("costs 5", True),
        ("The answer:", True),
        ("total, (so)", True),
        ("50%", True),
        ("####", True),
        ("76+18=", False),
        ("76 + 18 =", True),
        ("76 + 18 ≈", True),
        ("2*3==", False),
        ("(", False),
        ("it is $", False),
        ("-", False),
        ("line\n", False),
        ("", False),
        ("is ", False),
        ('he said "', False),
        ('he said "yes"', True),
        ('("', False),
        ("答案是", False),
        ("#", False),
    ],
)
def test_one_rule_says_where_a_space_follows(before: str, space: bool) -> None:
    assert space_follows(before) is space


def test_the_space_is_glued_to_digits_by_one_tokenizer_and_to_words_by_more() -> None:
    assert [kind for kind in TOKENIZER_KINDS if glues(TOKENIZERS[kind], "256")] == ["glue"]
    assert "merge" in [kind for kind in TOKENIZER_KINDS if glues(TOKENIZERS[kind], "is")]


def test_a_result_brings_its_space_where_it_is_glued() -> None:
    glue, split = TOKENIZERS["glue"], TOKENIZERS["split"]
    assert needs_space("a total:", glue) and not needs_space("a total:", split)
    assert not needs_space("is ", glue) and not needs_space("2+2=", glue)
    assert decode_piece(glue, splice_ids(glue, "a total:", "12")) == " 12"
    assert decode_piece(split, splice_ids(split, "a total: ", "12")) == "12"
    assert decode_piece(split, splice_ids(split, "a total:", "12")) == "12"
    assert not needs_space("a total:", TOKENIZERS["merge"], result="12")
    assert needs_space("a total:", TOKENIZERS["merge"], result="is")


def test_a_result_never_melts_into_a_word_or_a_number() -> None:
    for kind in TOKENIZER_KINDS:
        assert decode_piece(TOKENIZERS[kind], splice_ids(TOKENIZERS[kind], "there are 3", "12")) == " 12"


def test_text_that_a_tokenizer_normalises_is_still_a_question() -> None:
    tokenizer = TOKENIZERS["sentencepiece"]
    assert decode_piece(tokenizer, encode_piece(tokenizer, "a▁b")) == "a b"
