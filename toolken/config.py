"""Every setting, as frozen pydantic models that a YAML file mirrors one to one.

The docstring under a field is its `--help` text. Unknown keys are refused with the nearest valid one, values are
coerced and bounded by their types; secrets are no settings, but come from the environment. Nothing here reads a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator


class Section(BaseModel):
    """A frozen group of settings; extra keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


class BaseSection(Section):
    """The frozen base model."""

    name: str = "embedded"
    """Hub id, local directory, `.gguf` file, or `embedded` (SmolLM2-135M-Instruct)."""
    revision: str | None = None
    """Commit, tag or branch of a hub id."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """`auto`: bfloat16 where the device computes it natively, else float32."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda`, `cuda:1`, ..."""
    device_map: str | None = None
    """Spread the base over several GPUs, as transformers does (`auto`, `balanced`)."""
    quantization: Literal["none", "8bit", "4bit"] = "none"
    """Load the base in 8 or 4 bits, where bitsandbytes is installed."""
    adapter: str | None = None
    """Directory or hub id of a PEFT adapter that is applied to the base."""


class GenerateSection(Section):
    """The project's own seeded word problems (source `generated`)."""

    per_tool: int = Field(default=20, ge=0)
    """One-hop problems for each tool."""
    two_hop: int = Field(default=0, ge=0)
    """Problems with two calls, in all."""
    plain: int = Field(default=0, ge=0)
    """Texts without any call, in all."""
    seed: int = 0
    """Seed of the problems; validation uses the next one."""


class DataSection(Section):
    """Training and validation examples."""

    root: Path | None = None
    """Folder that relative sources start from; `$TOOLKEN_DATA` if unset, else the working directory."""
    train: list[str] = ["generated"]
    """Sources: `generated`, a path or glob with an optional `[:611]` row slice, or `hub:owner/name[:split]`."""
    validation: list[str] = []
    """Sources of validation rows; empty: a hash of the question holds out `validation_share` of the rows."""
    validation_share: float = Field(default=0.1, gt=0, lt=1)
    """Share of training rows that are held out when `validation` is empty."""
    exclude: list[str] = []
    """Sources whose questions must not be trained on, besides those of the validation rows."""
    negatives: list[str] = ["generated"]
    """Sources of plain text or chat without calls, so that tools stay quiet in ordinary text; `[]` for none."""
    unseen_text: list[str] = []
    """Sources of plain text on which false calls are reported, without rows that are trained on; empty: generated."""
    limit: int | None = Field(default=None, ge=1)
    """Keep only the first rows of every source of examples, for trials."""
    per_tool: int | None = Field(default=None, ge=1)
    """Train on a row only while a tool that it calls has fewer rows than so many; rows without calls are all kept."""
    on_bad_row: Literal["error", "skip"] = "error"
    """What a row without a usable call or span does: stop with its line, or be reported and left out."""
    require_examples: bool = False
    """Refuse a tool that has no training example (otherwise it is masked, with a warning)."""
    licence: str = ""
    """Licence of the training data, recorded in the artefact."""
    generate: GenerateSection = GenerateSection()


class PromptSection(Section):
    """The context in which the base sees a question, in training and in use alike."""

    template: str = "builtin:one-hop"
    """`builtin:one-hop`, `builtin:multi-hop`, `builtin:plain`, `builtin:answer-is`, `builtin:chat`, or a text file with
    `[QUESTION]`."""
    after: str = ""
    """Text between the question and the answer, for a template file that ends in `[QUESTION]`."""
    demonstrations: str = "auto"
    """Per-tool demonstrations in argument mode: `auto` (from training examples), or a file pattern with `{tool}`."""
    demonstrations_per_tool: int = Field(default=4, ge=0)
    """How many training examples `auto` takes for a tool."""
    conclusion: str = ""
    """Sentence appended to training answers without one, such as ` So, the answer is [RESULT].`"""
    answer_pattern: str = r"(?:[Tt]he answer is|####)"
    """Regular expression that announces the final answer; the first value after its last match counts."""
    stop: list[str] = ["\n\n", "\nQ:", "\nQuestion:"]
    """Texts that end an answer, beside the model's own end-of-sequence tokens."""


class FeaturesSection(Section):
    """Extraction of the frozen base's hidden states."""

    cache: Path | None = None
    """Cache folder; `$TOOLKEN_CACHE` if unset, else `~/.cache/toolken`."""
    token_budget: int = Field(default=4096, ge=1)
    """Padded tokens in one forward pass, the prompt's counted in every row; lower it when memory is short."""
    vocabulary_block: int = Field(default=64, ge=1)
    """Positions whose word logits are held at once."""
    shard_examples: int = Field(default=128, ge=1)
    """Examples in one cache file; what a killed run loses at most."""


class SolverSection(Section):
    """How the rows are found."""

    kind: Literal["convex", "adam"] = "convex"
    """`convex`: L-BFGS to the optimum. `adam`: the published recipe."""
    positions: Literal["all", "toolken"] = "all"
    """Supervise every position of the answer, or only those of toolkens."""
    softmax: Literal["all", "toolkens"] = "all"
    """Toolkens compete with words too, or among themselves alone (`positions: toolken`; calibration adds words)."""
    l2: Annotated[float, Field(ge=0)] | Literal["auto"] = "auto"
    """Prior strength: loss = mean over positions + l2 * sum ||w_k - w0_k||^2; `auto`: K-fold cross-validation."""
    l2_grid: list[Annotated[float, Field(ge=0)]] = Field(
        default=[1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6], min_length=1
    )
    """Strengths that `auto` tries, strongest first."""
    folds: int = Field(default=5, ge=2)
    """Folds over examples for `auto`."""
    prior: Literal["zero", "name", "description"] = "zero"
    """`w0`: zero, or the mean of the head rows of the words of the tool's name or description."""
    prior_scale: float = Field(default=1.0, gt=0)
    """What `w0` is multiplied by."""
    max_iterations: int = Field(default=500, ge=1)
    """L-BFGS iterations at most."""
    tolerance: float = Field(default=1e-5, gt=0)
    """Largest gradient entry at which the solve ends; less under a weak prior, at most 0.3 times its strength."""
    precision: Literal["float32", "float64"] = "float32"
    """Arithmetic of the solve."""
    block: int = Field(default=16384, ge=1)
    """Positions in one block of loss and gradient."""
    sample_words: int = Field(default=200_000, ge=1)
    """Above this many word positions the l2 search works on a re-weighted sample."""
    lr: float = Field(default=1e-4, gt=0)
    """Learning rate of `adam`."""
    epochs: int = Field(default=10, ge=1)
    """Epochs of `adam`; the best on validation is kept."""
    seed: int = 0
    """Initialisation and order of `adam`."""


class AlignSection(Section):
    """Alignment of the training context with the context of use, from unlabelled questions."""

    method: Literal["none", "mean", "moments", "covariance"] = "none"
    """What is matched: the means, the means and deviations of every dimension, or the whole covariance too."""
    positions: Literal["question", "decoding"] = "question"
    """Hidden states of use: behind every question, or at all positions of the base's own answers."""
    questions: list[str] = []
    """Sources of questions, whose answers are not read; empty: those of the validation rows."""
    limit: int = Field(default=2000, ge=2)
    """Questions at most, evenly spread."""
    shrinkage: float = Field(default=0.5, ge=0, le=1)
    """Share of the diagonal in `covariance`."""


class CalibrationSection(Section):
    """The shift of the bias, chosen on validation rows."""

    enabled: bool = True
    """Without it the solved bias is used as it is."""
    target: Literal["f1", "recall"] = "f1"
    """Best F1, or the best recall within `false_calls_per_1000`."""
    false_calls_per_1000: float = Field(default=1.0, ge=0)
    """Allowed false calls per 1,000 word positions, for target `recall`."""
    per_tool_positives: int = Field(default=20, ge=1)
    """A tool with at least so many validation calls gets a shift of its own."""


class InferenceSection(Section):
    """Decoding, calls and their limits."""

    batch_size: int = Field(default=16, ge=1)
    """Questions that are decoded together."""
    max_new_tokens: int = Field(default=256, ge=1)
    """Tokens of one answer; a result that is inserted at the limit is not cut."""
    max_argument_tokens: int = Field(default=64, ge=1)
    """Tokens of one argument text."""
    max_calls: int = Field(default=16, ge=0)
    """Calls in one answer."""
    max_repeats: int = Field(default=2, ge=1)
    """Times that the same tool may run with the same arguments in one answer."""
    retries: int = Field(default=1, ge=0)
    """Times that a failed call is asked for again, with the error shown."""
    temperature: float = Field(default=0.0, ge=0)
    """0: greedy."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus of sampling."""
    seed: int = 0
    """Seed of sampling; every question has its own stream."""
    bias: float = 0.0
    """Shift added to every toolken logit, on top of the calibrated bias."""
    allow: list[str] = []
    """Only these tools may be called; empty: all."""
    deny: list[str] = []
    """These tools may not be called."""
    result_format: str = ".6g"
    """Format of results that are not whole numbers."""
    constrain_arguments: bool = True
    """Let only tokens through that can continue valid arguments, where the tool takes numbers."""
    timeout: float = Field(default=5.0, gt=0)
    """Seconds that one call may take."""
    memory_mb: int = Field(default=512, ge=64)
    """Memory that the tool's process may take."""
    max_output: int = Field(default=4096, ge=1)
    """Characters that a tool may print or return."""

    @field_validator("result_format")
    @classmethod
    def _formats_numbers(cls, value: str) -> str:
        format(0.5, value)
        return value


class PublishedSection(Section):
    """The published recipe, `toolken-adam`: as `toolken`, without negatives, conclusion, alignment, calibration."""

    template: str = "builtin:plain"
    """Context of its training texts; it decodes in `prompt.template`."""
    lr: float = Field(default=1e-4, gt=0)
    """Learning rate."""
    epochs: int = Field(default=10, ge=1)
    """Epochs; the best on validation is kept."""
    bias: float = 0.0
    """Fixed shift of every toolken logit in decoding."""


class EvaluationSection(Section):
    """The benchmark that methods are compared on."""

    benchmark: str | None = None
    """`funcqa_oh`, `funcqa_mh`, `gsm8k_xl`, `kamel_30`, `kamel_60`, `kamel_100`, `kamel_234` or `virtualhome`."""
    split: Literal["test", "validation"] = "test"
    """Questions to answer; whatever is chosen is chosen on `validation`."""
    limit: int | None = Field(default=None, ge=1)
    """Questions of a fixed, seeded slice; all if unset."""
    seed: int = 0
    """Seed of the slice."""
    react_template: str | None = None
    """Text file with worked calls `<name>(...)=...` and `[QUESTION]`, for the method `react`."""
    icl_template: str | None = None
    """Text file with worked answers and `[QUESTION]` that the method `icl` shows; unset: built from training rows."""
    icl_tokens: int | None = Field(default=None, ge=1)
    """Tokens before the question at most, for `icl` and `icl-retrieved`; unset: what the base's context holds."""
    icl_retrieved: int = Field(default=8, ge=1)
    """Worked answers that `icl-retrieved` shows before a question."""
    published: PublishedSection = PublishedSection()


class TrackingSection(Section):
    """Weights & Biases, on top of `metrics.jsonl`."""

    mode: Literal["auto", "online", "offline", "disabled"] = "auto"
    """`auto`: online with a key, offline without one."""
    project: str = "toolken"
    """W&B project."""
    entity: str | None = None
    """W&B entity."""
    group: str | None = None
    """W&B group."""
    tags: list[str] = []
    """W&B tags."""


class Config(Section):
    """One training run."""

    name: str = "run"
    """Name of the run; part of the default run directory."""
    out: Path | None = None
    """Run directory; `runs/<name>-<hash of the settings>` if unset."""
    tools: str = "arithmetic"
    """Built-in tool set `arithmetic`, `benchmark:NAME` for a benchmark's own, or `FILE.py:NAME` of your own ToolSet."""
    init_from: Path | None = None
    """Artefact whose rows are kept, byte for byte, while tools are added to it; its prompt serves unless one is set."""
    sample_questions: list[str] = []
    """Questions that are answered, on screen, at the end of training."""
    base: BaseSection = BaseSection()
    data: DataSection = DataSection()
    prompt: PromptSection = PromptSection()
    features: FeaturesSection = FeaturesSection()
    solver: SolverSection = SolverSection()
    align: AlignSection = AlignSection()
    calibration: CalibrationSection = CalibrationSection()
    inference: InferenceSection = InferenceSection()
    evaluation: EvaluationSection = EvaluationSection()
    tracking: TrackingSection = TrackingSection()
