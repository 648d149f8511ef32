"""The trie of contexts: counted by hand, and against a set of all prefixes."""

import random

from tests.inference.heads import BARE
from tests.tiny import tiny_base
from toolken.bench.trie import Recorder, trie_nodes
from toolken.config import InferenceSection
from toolken.inference.engine import Engine


def test_a_trie_by_hand() -> None:
    assert trie_nodes([]) == 0
    assert trie_nodes([[1, 2, 3]]) == 3
    assert trie_nodes([[1, 2, 3], [1, 2], [1, 2, 3]]) == 3
    # 1, 12, 123, 124, 1245, 2, 22: no sharing behind a difference, however alike the rest.
    assert trie_nodes([[1, 2, 3], [1, 2, 4, 5], [2, 2]]) == 7


def test_the_count_is_that_of_all_distinct_prefixes() -> None:
    rng = random.Random(0)
    for _ in range(50):
        contexts = [[rng.randrange(3) for _ in range(rng.randrange(1, 9))] for _ in range(rng.randrange(1, 30))]
        prefixes = {tuple(context[:end]) for context in contexts for end in range(1, len(context) + 1)}
        assert trie_nodes(contexts) == len(prefixes)


def test_a_recorder_changes_no_answer_and_notes_every_context() -> None:
    base = tiny_base()
    config = InferenceSection(max_new_tokens=6)
    plain = Engine(base, prompt=BARE, config=config).answer(["How many?", "a"])
    engine = Engine(base, prompt=BARE, config=config)
    recorder = Recorder(engine.backend)
    engine.backend = recorder
    answers = engine.answer(["How many?", "a"])
    assert [a.token_ids for a in answers] == [a.token_ids for a in plain]
    assert len(recorder.contexts) == sum(len(a.token_ids) + (a.finish_reason == "eos") for a in answers)
    prompts = sum(a.usage.prompt_tokens for a in answers)
    assert trie_nodes(recorder.contexts) <= prompts + sum(len(a.token_ids) for a in answers)
