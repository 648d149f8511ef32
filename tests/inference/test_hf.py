"""The backend and plain decoding: what the model itself would do, whatever is cached and whoever is in the batch."""

import pytest
import torch

from tests.inference.heads import BARE, head_of
from tests.inference.scripted import add, look
from tests.tiny import FAMILIES, TOKENIZER_KINDS, tiny_base, tiny_model, tiny_tokenizer
from toolken.config import InferenceSection
from toolken.inference.backend import Request
from toolken.inference.engine import Engine
from toolken.inference.hf import HFBackend
from toolken.model.base import BaseLM
from toolken.tools.toolset import ToolSet

QUESTIONS = ["How many is it?", "a", "The total of the numbers is equal to the sum of all of them, that is"]


def request(ids: list[int], *, toolkens: frozenset[int] = frozenset(), noise: int | None = None) -> Request:
    return Request(0, ids, (), toolkens, noise)


@pytest.mark.parametrize("family", FAMILIES)
def test_law_3_without_tools_the_greedy_tokens_are_those_of_generate(family: str) -> None:
    base = tiny_base(family)
    engine = Engine(base, prompt=BARE, config=InferenceSection(max_new_tokens=24, batch_size=2))
    for question, answer in zip(QUESTIONS, engine.answer(QUESTIONS), strict=True):
        ids = torch.tensor([BARE.question_ids(base.tokenizer, question)])
        mask = torch.ones_like(ids)
        out = base.model.generate(ids, attention_mask=mask, max_new_tokens=24, do_sample=False)[0, ids.shape[1] :]
        expected = out.tolist()
        if expected[-1] in base.eos_ids:
            expected.pop()
            assert answer.finish_reason == "eos"
        assert list(answer.token_ids) == expected
        assert answer.text == base.tokenizer.decode([*ids[0], *expected], skip_special_tokens=False)[len(question) :]


@pytest.mark.parametrize("kind", TOKENIZER_KINDS)
def test_law_3_holds_for_every_tokenizer_and_for_a_head_whose_tools_are_denied(kind: str) -> None:
    base = tiny_base("llama", kind)
    head = head_of(base, [add, look], prompt=BARE, bias=1e6)
    config = InferenceSection(max_new_tokens=20, allow=["add", "look"], deny=["add", "look"])
    plain = Engine(base, prompt=BARE, config=InferenceSection(max_new_tokens=20)).answer(QUESTIONS)
    denied = Engine(base, head, tools=ToolSet([add, look]), config=config).answer(QUESTIONS)
    assert [answer.token_ids for answer in plain] == [answer.token_ids for answer in denied]
    assert not any(answer.calls for answer in denied)
    allowed = config.model_copy(update={"deny": []})
    with Engine(base, head, tools=ToolSet([add, look]), config=allowed) as engine:
        assert any(answer.calls for answer in engine.answer(QUESTIONS)), "the law is empty where nothing would call"


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt2"])
def test_law_3_every_declared_end_of_sequence_id_ends_the_answer_as_in_generate(family: str) -> None:
    base = tiny_base(family)
    ids = torch.tensor([BARE.question_ids(base.tokenizer, QUESTIONS[0])])
    settings = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 24, "do_sample": False}
    plain = base.model.generate(ids, **settings)[0, ids.shape[1] :].tolist()
    later = next(token for token in plain[3:] if token not in plain[:3])
    model = tiny_model(family, len(base.tokenizer))
    model.generation_config.eos_token_id = [2, later]
    ended = BaseLM.from_model(model, tiny_tokenizer(), name="ended")
    expected = ended.model.generate(ids, **settings)[0, ids.shape[1] :].tolist()
    (answer,) = Engine(ended, prompt=BARE, config=InferenceSection(max_new_tokens=24)).answer(QUESTIONS[:1])
    assert (answer.finish_reason, [*answer.token_ids, later]) == ("eos", expected)


@pytest.mark.parametrize("family", ["llama", "gemma2", "phi", "cohere"])
def test_candidates_are_all_words_and_allowed_toolkens_in_the_order_of_their_logits(family: str) -> None:
    base = tiny_base(family, padded=7)
    weight = torch.randn((3, base.hidden_size), generator=torch.Generator().manual_seed(1)) * 0.5
    head = head_of(base, [add, look], weight=weight[:2], bias=0.3)
    ids = [7, 8, 9, 10]
    backend = HFBackend(base, head, bias=0.5)
    (ranked,) = backend.rank([request(ids, toolkens=frozenset({1}))])
    got = list(ranked)
    hidden = base.hidden(torch.tensor([ids]))[0, -1]
    scores = torch.cat([base.word_logits(hidden), head.logits(hidden, base)[1:] + 0.5])
    assert len(got) == base.vocab_size + 1 == len(scores)
    expected = torch.sort(scores, descending=True, stable=True)
    torch.testing.assert_close(torch.tensor([c.score for c in got]), expected.values, atol=1e-5, rtol=1e-5)
    assert sorted(c.token for c in got) == [-1, *range(base.vocab_size)]
    assert [c.toolken for c in got if c.token == -1] == [1]


def test_padded_rows_are_never_picked() -> None:
    base = tiny_base(padded=40)
    with torch.no_grad():
        base.model.get_output_embeddings().weight[base.vocab_size :] *= 100
    answers = Engine(base, prompt=BARE, config=InferenceSection(max_new_tokens=20)).answer(QUESTIONS)
    assert all(token < base.vocab_size for answer in answers for token in answer.token_ids)


def test_sampling_draws_the_same_with_or_without_toolkens_allowed() -> None:
    base = tiny_base()
    backend = HFBackend(base, head_of(base, [add], bias=-1e9), temperature=0.8)
    first = [next(backend.rank([request([7, 8], noise=seed)])[0]).token for seed in range(20)]
    second = [next(backend.rank([request([7, 8], noise=seed, toolkens=frozenset({0}))])[0]).token for seed in range(20)]
    assert first == second and len(set(first)) > 1


def test_fed_tokens_are_counted() -> None:
    base = tiny_base()
    backend = HFBackend(base)
    backend.rank([request([7, 8, 9])])
    backend.rank([request([7, 8, 9, 10])])
    assert backend.fed_tokens == 4 == backend.release(0)
    assert backend.seconds > 0


def test_a_slot_ranks_the_toolkens_of_each_request_also_when_it_asked_with_others_before() -> None:
    base = tiny_base("llama")
    head = head_of(base, [add, look], bias=1e6)
    backend = HFBackend(base, head)
    ids = [7, 8, 9]
    for allowed in ({0}, {1}, {0, 1}, {0}, set(), {1}):
        (ranked,) = backend.rank([request(ids, toolkens=frozenset(allowed))])
        assert {candidate.toolken for candidate in ranked if candidate.toolken >= 0} == allowed
