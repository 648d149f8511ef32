"""Law 6: character spans to token positions equals brute force over characters, for every kind of tokenizer."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase

from tests.data.spacing import space_agreement
from tests.tiny import TOKENIZER_KINDS, tiny_tokenizer
from toolken.config import PromptSection
from toolken.data.align import Encoded, align, align_text
from toolken.data.encode import begin_ids, decode_piece, encode_text, glues, splice_ids
from toolken.data.example import CallSpan, Example
from toolken.data.prompts import load_prompt
from toolken.errors import UserError

TOKENIZERS = {kind: tiny_tokenizer(kind) for kind in TOKENIZER_KINDS}
TOOLS = ("add", "gcd")
PLAIN = replace(load_prompt(PromptSection(template="builtin:plain")), conclusion="")

WORDS = st.lists(st.sampled_from([*"is the=+($-,. \n", "####", "12"]), max_size=12).map("".join)
RESULTS = st.sampled_from(["4", "256", "0.5", "-3", "1943.25", "yes", "64520382"])


@st.composite
def texts_with_calls(draw: st.DrawFn) -> tuple[str, tuple[CallSpan, ...]]:
    """Random words with results of random tools between them."""
    text, calls = draw(WORDS), []
    for _ in range(draw(st.integers(0, 3))):
        result = draw(RESULTS)
        calls.append(CallSpan(len(text), len(text) + len(result), draw(st.sampled_from(TOOLS)), "1"))
        text += result + draw(WORDS)
    return text, tuple(calls)


def brute_force(
    tokenizer: PreTrainedTokenizerBase, ids: list[int], calls: tuple[CallSpan, ...]
) -> list[tuple[int, int]]:
    """(token position, row or -1) of every supervised token, found by looking at each character of each token."""
    owner: dict[int, int] = {}
    for number, call in enumerate(calls):
        owner.update(dict.fromkeys(range(call.start, call.end), number))
    found, at, seen = [], 0, set[int]()
    for position, token in enumerate(ids):
        piece = decode_piece(tokenizer, [token])
        assert piece.isascii() and piece
        owners = [owner.get(at + offset, -1) for offset in range(len(piece))]
        inside = {number for number in owners if number >= 0}
        if not inside:
            found.append((position, -1))
        else:
            (number,) = inside  # no token reaches into two results
            outside = owners.count(-1)
            assert outside == 0 or (outside == 1 and piece[0] == " " and owners[0] == -1), "a token crosses a result"
            if number not in seen:
                found.append((position, TOOLS.index(calls[number].tool)))
            seen.add(number)
        at += len(piece)
    return found


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@settings(max_examples=120, deadline=None)
@given(case=texts_with_calls())
def test_law_6_alignment_equals_brute_force_over_characters(kind: str, case: tuple[str, tuple[CallSpan, ...]]) -> None:
    text, calls = case
    tokenizer = TOKENIZERS[kind]
    asked = [7]
    encoded = align_text(text, calls, asked=asked, tokenizer=tokenizer, tools=TOOLS)
    answer = list(encoded.ids[1:])
    assert decode_piece(tokenizer, answer) == text
    expected = brute_force(tokenizer, answer, calls)
    assert list(zip(encoded.index, encoded.toolken, strict=True)) == expected  # index counts from the token before
    assert [encoded.ids[i + 1] for i in encoded.index] == list(encoded.target)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
@settings(max_examples=60, deadline=None)
@given(case=texts_with_calls())
def test_law_6_training_holds_the_ids_that_decoding_splices(kind: str, case: tuple[str, tuple[CallSpan, ...]]) -> None:
    text, calls = case
    tokenizer = TOKENIZERS[kind]
    encoded = align_text(text, calls, asked=[7], tokenizer=tokenizer, tools=TOOLS)
    at = [i + 1 for i, row in zip(encoded.index, encoded.toolken, strict=True) if row >= 0]
    for position, call in zip(at, calls, strict=True):
        before = decode_piece(tokenizer, encoded.ids[1:position])
        result = text[call.start : call.end]
        spliced = splice_ids(tokenizer, before, result)
        if before + decode_piece(tokenizer, spliced) == text[: call.end]:  # the rule for spaces agrees with the text
            assert list(encoded.ids[position : position + len(spliced)]) == spliced


def test_a_glued_space_goes_with_the_result_and_else_stays_a_word() -> None:
    text, calls = "it is 256.", (CallSpan(6, 9, "gcd", "512,768"),)
    for kind, expected in {"glue": " ", "split": "", "merge": "", "equals": "", "sentencepiece": ""}.items():
        tokenizer = TOKENIZERS[kind]
        encoded = align_text(text, calls, asked=[7], tokenizer=tokenizer, tools=TOOLS)
        at = next(i + 1 for i, row in zip(encoded.index, encoded.toolken, strict=True) if row >= 0)
        assert decode_piece(tokenizer, encoded.ids[1:at]) == ("it is" if expected else "it is ")
        assert decode_piece(tokenizer, [encoded.ids[at]]).startswith(expected)
        assert glues(tokenizer, "256") == bool(expected)


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_law_6_where_a_prompt_ends_in_a_word_the_call_stands_right_after_a_word(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    asking = load_prompt(PromptSection(template="builtin:answer-is"))
    first, later = example("1945 (in May)", (CallSpan(0, 4, "gcd", "1"),)), "It was in 1945, x=7."
    calls = (CallSpan(10, 14, "gcd", "1"), CallSpan(18, 19, "add", "1"))
    encoded = align(first, prompt=asking, tokenizer=tokenizer, tools=TOOLS)
    asked = asking.question_ids(tokenizer, first.question)
    assert (encoded.index[0], encoded.toolken[0]) == (len(asked) - 1, TOOLS.index("gcd"))
    spliced = splice_ids(tokenizer, asking.after, "1945")
    assert list(encoded.ids[len(asked) :][: len(spliced)]) == spliced
    assert decode_piece(tokenizer, encoded.ids[len(asked) :]) == " 1945 (in May)"
    prose = align(Example("", later, calls), prompt=asking, tokenizer=tokenizer, tools=TOOLS)
    ends = [i + 1 for i, row in zip(prose.index, prose.toolken, strict=True) if row >= 0]
    assert [decode_piece(tokenizer, prose.ids[:end]) for end in ends] == ["It was in", "It was in 1945, x="]
    plain = align(first, prompt=PLAIN, tokenizer=tokenizer, tools=TOOLS)
    assert (plain.toolken[0] >= 0) == glues(tokenizer, "1945")


def test_an_equals_sign_is_never_merged_with_the_result() -> None:
    tokenizer = TOKENIZERS["equals"]
    assert len(encode_text(tokenizer, "=2")) == 1
    encoded = align_text("1+1=2", (CallSpan(4, 5, "add", "1,1"),), asked=[7], tokenizer=tokenizer, tools=TOOLS)
    assert decode_piece(tokenizer, encoded.ids[-2:-1]) == "="
    assert encoded.toolken[-1] == 0


def example(answer: str, calls: tuple[CallSpan, ...] = (), question: str = "How many?") -> Example:
    return Example(question, answer, calls, origin="rows.jsonl:7")


def supervised(encoded: Encoded, tokenizer: PreTrainedTokenizerBase) -> str:
    return decode_piece(tokenizer, encoded.ids[encoded.index[0] + 1 :])


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_the_first_token_of_the_answer_is_predicted_from_the_last_of_the_prompt(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    encoded = align(example("They are 12."), prompt=PLAIN, tokenizer=tokenizer, tools=TOOLS)
    asked = PLAIN.question_ids(tokenizer, "How many?")
    assert encoded.prefix == PLAIN.prefix_ids(tokenizer)
    assert list(encoded.ids[: len(asked)]) == asked
    assert encoded.index[0] == len(asked) - 1
    assert encoded.index == tuple(range(len(asked) - 1, len(encoded.ids) - 1))
    assert supervised(encoded, tokenizer) == " They are 12."


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_a_text_without_a_question_is_seen_without_the_prompt(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    encoded = align(example("Plain words.", question=""), prompt=PLAIN, tokenizer=tokenizer, tools=TOOLS)
    assert encoded.prefix == begin_ids(tokenizer)
    assert decode_piece(tokenizer, encoded.ids) == "Plain words."
    assert encoded.index == tuple(range(len(encoded.ids) - 1))


def test_a_conclusion_ends_answers_that_have_none_and_calls_keep_their_spans() -> None:
    tokenizer = TOKENIZERS["split"]
    prompt = load_prompt(PromptSection(template="builtin:one-hop"))
    calls = (CallSpan(2, 3, "add", "1,2"), CallSpan(11, 12, "gcd", "4,8"))
    encoded = align(example("  3 and is 4", (calls[0], calls[1])), prompt=prompt, tokenizer=tokenizer, tools=TOOLS)
    assert supervised(encoded, tokenizer) == " 3 and is 4 So, the answer is 4."
    assert [row for row in encoded.toolken if row >= 0] == [0, 1]
    positions = [i + 1 for i, row in zip(encoded.index, encoded.toolken, strict=True) if row >= 0]
    assert [decode_piece(tokenizer, [encoded.ids[p]]) for p in positions] == ["3", "4"]
    said = align(example("So, the answer is 4."), prompt=prompt, tokenizer=tokenizer, tools=TOOLS)
    assert supervised(said, tokenizer) == " So, the answer is 4."
    without = align(example("Nobody knows."), prompt=prompt, tokenizer=tokenizer, tools=TOOLS)
    assert supervised(without, tokenizer) == " Nobody knows."


def test_law_6_what_cannot_be_aligned_is_refused_with_its_line() -> None:
    with pytest.raises(UserError, match=r"^rows\.jsonl:7: the tokenizer does not give"):
        align(example("a▁b"), prompt=PLAIN, tokenizer=TOKENIZERS["sentencepiece"], tools=TOOLS)
    with pytest.raises(UserError, match=r"^rows\.jsonl:7: no tool <gdc>.*did you mean `gcd`"):
        align(example("is 4", (CallSpan(3, 4, "gdc", "1"),)), prompt=PLAIN, tokenizer=TOKENIZERS["split"], tools=TOOLS)


def test_the_share_of_calls_that_agree_with_the_rule_for_spaces() -> None:
    rows = [
        example("is 4", (CallSpan(3, 4, "gcd", "4,8"),)),
        example("1+1=2", (CallSpan(4, 5, "add", "1,1"),)),
        example("1 + 1 =2", (CallSpan(7, 8, "add", "1,1"),)),
        example("4 it is", (CallSpan(0, 1, "gcd", "4,8"),)),
    ]
    agreement = space_agreement(rows)
    assert (agreement.agree, agreement.calls, agreement.share) == (3, 4, 0.75)
    assert space_agreement([]).share == 1.0
