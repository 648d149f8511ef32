"""The contexts in which the base sees a question: the reasoning prompt, and a tool's demonstrations for arguments.

Invariant: both are plain text that goes into an artefact and comes back the same; token ids are made from it by the
same functions in training and in use. The part before the question is a prefix that all questions share. A template
without `[QUESTION]` and a missing demonstration file are refused when they are loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from toolken.config import PromptSection
from toolken.data.builtin_prompts import CHAT_INSTRUCTION, CONCLUSIONS, TEMPLATES
from toolken.data.demonstrations import show_examples
from toolken.data.encode import decode_piece, encode_piece, space_follows
from toolken.data.example import Example
from toolken.data.frame import QUESTION, frame_prefix, frame_question, lead, read_frame, split_frame
from toolken.errors import UserError, did_you_mean
from toolken.tools.patterns import compile_pattern
from toolken.tools.toolset import ToolSet

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

BUILTIN = "builtin:"
CHAT = "builtin:chat"


@dataclass(frozen=True)
class Prompt:
    """The reasoning prompt.

    Attributes:
        before: Text before the question, the same for all questions.
        after: Text between the question and the answer.
        chat: The text came from the tokenizer's chat template.
        answer_pattern: Regular expression that announces the final answer.
        stop: Texts that end an answer.
        conclusion: Appended to training answers that `answer_pattern` does not match; `[RESULT]` is the last result.
    """

    before: str
    after: str
    chat: bool
    answer_pattern: str
    stop: tuple[str, ...]
    conclusion: str

    @property
    def hash(self) -> str:
        """SHA-256 of all fields."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def lead(self) -> str:
        """What stands between the prompt and the answer: a space or nothing."""
        return lead(self.after)

    def prefix_ids(self, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
        """Return the shared prefix: beginning-of-sequence once, special tokens parsed."""
        return frame_prefix(tokenizer, self.before)

    def question_ids(self, tokenizer: PreTrainedTokenizerBase, question: str) -> list[int]:
        """Return what follows the prefix up to the answer; special tokens in the question are ordinary characters."""
        return frame_question(tokenizer, (self.before, self.after), question)


@dataclass(frozen=True)
class Demonstrations:
    """What one tool's arguments are filled after: worked calls, then `[QUESTION]` in the frame of the worked ones."""

    text: str

    def prefix_ids(self, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
        """Return the demonstrations up to the new question: a prefix that all calls of the tool share."""
        return frame_prefix(tokenizer, split_frame(self.text, "demonstrations")[0])

    def context_ids(
        self, tokenizer: PreTrainedTokenizerBase, question: str, text_ids: Sequence[int], tool: str
    ) -> list[int]:
        """Return the whole context of a call: the prefix, the question, the answer so far and `<tool>(`.

        Args:
            tokenizer: The base's tokenizer.
            question: The question that is being answered.
            text_ids: The answer so far, with the ids it was generated with; they are reused as they are, save a
                lone space at the end, which the opening mark takes into its own first token.
            tool: Name of the tool.
        """
        before, after = split_frame(self.text, "demonstrations")
        kept = list(text_ids)
        spaced = bool(kept) and kept[-1:] == encode_piece(tokenizer, " ")
        if spaced:
            kept.pop()
        else:
            spaced = space_follows(after + decode_piece(tokenizer, kept))
        opening = encode_piece(tokenizer, f"{' ' if spaced else ''}<{tool}>(")
        asked = frame_question(tokenizer, (before, after), question)
        return [*self.prefix_ids(tokenizer), *asked, *kept, *opening]


def _chat_template(tokenizer: PreTrainedTokenizerBase | None, where: str) -> str:
    """Render the tokenizer's chat template around the placeholder, thinking switched off where a template knows it."""
    if tokenizer is None or not tokenizer.chat_template:
        raise UserError(where, f"the base's tokenizer has no chat template for {CHAT}", "use builtin:one-hop")
    apart = [{"role": "system", "content": CHAT_INSTRUCTION}, {"role": "user", "content": QUESTION}]
    together = [{"role": "user", "content": f"{CHAT_INSTRUCTION}\n\n{QUESTION}"}]
    for messages in (apart, together):
        try:
            rendered = tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
            )
        except jinja2.TemplateError:  # templates without a system turn refuse it this way
            continue
        text = str(rendered)
        if text.count(QUESTION) == 1 and CHAT_INSTRUCTION in text:
            return text
    raise UserError(where, "the base's chat template changes the text of a turn", "use builtin:one-hop or a file")


def load_prompt(
    section: PromptSection, *, root: Path | None = None, tokenizer: PreTrainedTokenizerBase | None = None
) -> Prompt:
    """Load the reasoning prompt that a configuration names.

    Args:
        section: `template` is a built-in name or a file with `[QUESTION]`; an empty `conclusion` means the built-in's
            own one, and a chat prompt whose `stop` was left at its default ends with the model's own tokens only;
            `after` follows the question where the template ends in it.
        root: Folder that a relative file name starts from, before the working directory.
        tokenizer: Needed for `builtin:chat` alone.

    Raises:
        UserError: Unknown built-in, no such file, no placeholder, no usable chat template, or a pattern that is none.
    """
    where = f"prompt.template {section.template}"
    compile_pattern(section.answer_pattern, "prompt.answer_pattern")
    conclusion, stop, chat = section.conclusion, tuple(section.stop), section.template == CHAT
    if section.template.startswith(BUILTIN):
        name = section.template.removeprefix(BUILTIN)
        if name not in CONCLUSIONS:
            known = [BUILTIN + known for known in CONCLUSIONS]
            raise UserError("prompt.template", f"no prompt {section.template}", did_you_mean(section.template, known))
        text = _chat_template(tokenizer, where) if chat else TEMPLATES[name]
        conclusion = conclusion or CONCLUSIONS[name]
        stop = () if chat and section.stop == PromptSection().stop else stop
    else:
        text = read_frame(section.template, root, where)
        if text.count(QUESTION) > 1:
            raise UserError(where, f"{text.count(QUESTION)} times {QUESTION} in the template", "keep the last one only")
    before, after = split_frame(text, where)
    if after and section.after:
        problem = f"the template goes on after {QUESTION}, with {after[:40]!r}"
        raise UserError("prompt.after", problem, "leave it out, or end the template in [QUESTION]")
    after = after or section.after.rstrip(" ")
    return Prompt(before, after, chat, section.answer_pattern, stop, conclusion)


def load_demonstrations(
    section: PromptSection, *, root: Path | None = None, tools: ToolSet, examples: Sequence[Example] = ()
) -> dict[str, Demonstrations]:
    """Return the demonstrations of every tool.

    Args:
        section: `demonstrations` is `auto` (worked calls from training examples) or a file pattern with `{tool}`.
        root: Folder that a relative pattern starts from, before the working directory.
        tools: The tools, with the descriptions that `auto` shows.
        examples: Training examples; a tool without any is shown by its name and description.

    Raises:
        UserError: A tool's file is missing or has no placeholder.
    """
    if section.demonstrations == "auto":
        count, chat = section.demonstrations_per_tool, section.template == CHAT
        return {tool.name: Demonstrations(show_examples(tool, examples, count=count, chat=chat)) for tool in tools}
    if "{tool}" not in section.demonstrations:
        raise UserError(
            "prompt.demonstrations", f"no {{tool}} in {section.demonstrations}", "write `auto` or `FOLDER/{tool}.txt`"
        )
    loaded = {}
    for tool in tools:
        name = section.demonstrations.replace("{tool}", tool.name)
        text = read_frame(name, root, f"prompt.demonstrations of <{tool.name}>")
        split_frame(text, f"prompt.demonstrations of <{tool.name}>: {name}")
        loaded[tool.name] = Demonstrations(text)
    return loaded
