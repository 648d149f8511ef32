"""The published decoding loop and the engine: the same answers where no rule of the engine's own plays a part."""

import pytest
import torch

from tests.bench.loud import shout
from tests.inference.heads import calling_base, random_head
from tests.inference.scripted import look
from tests.tiny import Family, TokenizerKind
from toolken.bench.reference_decoding import Generation, ReferenceAnswer, ReferenceDecoder
from toolken.config import InferenceSection
from toolken.inference.engine import Answer, Engine
from toolken.model.base import BaseLM
from toolken.model.head import ToolkenHead
from toolken.tools.arithmetic import ARITHMETIC
from toolken.tools.executor import Executor
from toolken.tools.toolset import ToolSet

QUESTIONS = ["How many is it?", "a", "Q", "What is 12 and 30?", "The total of the numbers is equal to the sum, that is"]
# Without the grammar and the second tries that the published loop does not have.
PLAINLY = InferenceSection(
    max_new_tokens=24, max_argument_tokens=12, max_calls=3, batch_size=4, constrain_arguments=False, retries=0
)


def both(
    base: BaseLM, head: ToolkenHead, config: InferenceSection
) -> tuple[list[Answer], list[ReferenceAnswer], ReferenceDecoder]:
    """Answer all questions with the engine, batched, and with the published loop."""
    with Engine(base, head, tools=ToolSet([look, shout]), config=config) as engine, Executor() as executor:
        reference = ReferenceDecoder(
            base,
            head,
            tools=engine.tools,
            demonstrations=engine.demonstrations,
            prompt=engine.prompt_of(""),
            config=config,
            executor=executor,
        )
        return engine.answer(QUESTIONS), [reference.answer(question) for question in QUESTIONS], reference


@pytest.mark.parametrize(
    ("family", "tokenizer"), [("llama", "merge"), ("gpt2", "glue"), ("qwen3", "equals"), ("opt", "split")]
)
def test_without_calls_both_write_the_same_tokens(family: Family, tokenizer: TokenizerKind) -> None:
    base = calling_base(family, tokenizer)
    answers, references, _ = both(base, random_head(base, [look], bias=-1e6), PLAINLY)
    assert [r.token_ids for r in references] == [a.token_ids for a in answers]
    assert [(r.text, r.answer) for r in references] == [(a.text, a.answer) for a in answers]
    assert all((r.calls, r.prefills) == (0, 1) for r in references)


@pytest.mark.parametrize(("family", "tokenizer"), [("llama", "glue"), ("qwen3", "merge"), ("mistral", "glue")])
def test_with_calls_that_run_and_calls_that_fail_both_write_the_same_tokens(
    family: Family, tokenizer: TokenizerKind
) -> None:
    # Heads under which no word extends a number and no call directly follows another: there the engine has rules.
    base = calling_base(family, tokenizer)
    answers, references, _ = both(base, random_head(base, [shout, ARITHMETIC["add"]], bias=6.0), PLAINLY)
    assert [r.token_ids for r in references] == [a.token_ids for a in answers]
    assert [r.text for r in references] == [a.text for a in answers]
    ran = sum(call.outcome.ok for a in answers for call in a.calls)
    assert [r.calls for r in references] == [len(a.calls) for a in answers]
    assert sum(r.calls - r.failed for r in references) == ran
    assert ran >= 2 and sum(r.failed for r in references) >= 2, "the law is empty without calls of both kinds"


def test_every_switch_reads_its_whole_context_again() -> None:
    base = calling_base("llama", "glue")
    answers, references, _ = both(base, random_head(base, [shout], bias=6.0), PLAINLY)
    for answer, reference in zip(answers, references, strict=True):
        ran = reference.calls - reference.failed
        # Arguments, the word behind the result, what follows; arguments and a second look where a call failed.
        last = answer.finish_reason == "length" and bool(answer.calls) and answer.calls[-1].end == len(answer.text)
        assert reference.prefills == 1 + 3 * ran + 2 * reference.failed - 2 * last
        assert reference.fed_tokens >= reference.prefills * (answer.usage.prompt_tokens - 1)


def test_no_digit_follows_a_number_and_the_text_of_a_failed_call_is_nowhere() -> None:
    base = calling_base("llama", "merge")
    head = random_head(base, [ARITHMETIC["add"], look], bias=6.0)
    _, references, decoder = both(base, head, PLAINLY.model_copy(update={"max_argument_tokens": 30, "max_calls": 8}))
    assert any(r.failed for r in references)
    assert all("<add>" not in r.text and "<look>" not in r.text for r in references)
    state = decoder._question("a")
    state.ids = base.tokenizer("12", add_special_tokens=False)["input_ids"]
    decoder._word_behind(state, "12")
    assert not decoder._piece(state.ids[-1])[:1].isnumeric()


def test_one_stretch_of_generation_is_a_pass_over_its_ids() -> None:
    base = calling_base("llama")
    ids = list(range(5, 30))
    generation = Generation(base, ids[:20])
    for at in range(20, 25):
        generation.feed(ids[at : at + 1])
    torch.testing.assert_close(generation.hidden[0], base.hidden(torch.tensor([ids]))[0, -1], atol=1e-4, rtol=1e-4)


def test_limits_end_an_answer() -> None:
    base = calling_base("llama", "glue")
    config = PLAINLY.model_copy(update={"max_new_tokens": 5, "max_calls": 1})
    _, references, _ = both(base, random_head(base, [shout], bias=1e6), config)
    assert all(r.calls == 1 for r in references)
    assert all(r.failed or len(r.token_ids) >= 5 for r in references)
