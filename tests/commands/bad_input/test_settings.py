"""Settings and flags that are wrong: the file and line or the flag, the nearest valid one, what is valid."""

from __future__ import annotations

import pytest

from tests.commands.bad_input.refusal import Bench, Refusal

REFUSALS = [
    Refusal(
        "no such command",
        {},
        "trian",
        "trian: no such command; did you mean `train`?",
    ),
    Refusal(
        "a command without its second word",
        {},
        "data",
        "data: names no command by itself; use `data validate` or `data convert` or `data generate`",
    ),
    Refusal(
        "an unknown flag",
        {},
        "train --solver.l22 1",
        "--solver.l22: unknown flag; did you mean `--solver.l2`?",
    ),
    Refusal(
        "an unknown key",
        {"c.yaml": "solver:\n  l22: 1\n"},
        "train --config c.yaml",
        "c.yaml:2: unknown key `solver.l22`; did you mean `solver.l2`?",
    ),
    Refusal(
        "a key of another section",
        {"c.yaml": "data:\n  l2: 1\n"},
        "train --config c.yaml",
        "c.yaml:2: unknown key `data.l2`; did you mean `solver.l2`?",
    ),
    Refusal(
        "a wrong type",
        {"c.yaml": "name: x\nsolver:\n  epochs: many\n"},
        "train --config c.yaml",
        "c.yaml:3: `solver.epochs` is 'many': input should be a valid integer, unable to parse string as an "
        "integer; solver.epochs: Epochs of `adam`; the best on validation is kept.",
    ),
    Refusal(
        "a wrong type in a flag",
        {},
        "train --solver.epochs 1.5",
        "--solver.epochs: `solver.epochs` is '1.5': input should be a valid integer, unable to parse string "
        "as an integer; solver.epochs: Epochs of `adam`; the best on validation is kept.",
    ),
    Refusal(
        "a truth value for a text",
        {"c.yaml": "base: {name: true}\n"},
        "train --config c.yaml",
        "c.yaml:1: `base.name` is true, which is no valid value; base.name: Hub id, local directory, `.gguf` "
        "file, or `embedded` (SmolLM2-135M-Instruct).",
    ),
    Refusal(
        "a number for a text",
        {"c.yaml": "name: 5\n"},
        "train --config c.yaml",
        "c.yaml:1: `name` is 5: input should be a valid string; put quotes around it",
    ),
    Refusal(
        "a value below its bound",
        {"c.yaml": "solver:\n  l2: -1\n"},
        "train --config c.yaml",
        "c.yaml:2: `solver.l2` is -1: input should be greater than or equal to 0 or input should be 'auto'; "
        "solver.l2: Prior strength: loss = mean over positions + l2 * sum ||w_k - w0_k||^2; `auto`: K-fold "
        "cross-validation.",
    ),
    Refusal(
        "a value above its bound",
        {},
        "infer --toolkens nowhere --question a --inference.top_p 2",
        "--inference.top_p: `inference.top_p` is '2': input should be less than or equal to 1; "
        "inference.top_p: Nucleus of sampling.",
    ),
    Refusal(
        "a bound that is not reached",
        {},
        "train --data.validation_share 1",
        "--data.validation_share: `data.validation_share` is '1': input should be less than 1; "
        "data.validation_share: Share of training rows that are held out when `validation` is empty.",
    ),
    Refusal(
        "none of the choices",
        {},
        "train --solver.kind sgd",
        "--solver.kind: `solver.kind` is 'sgd': input should be 'convex' or 'adam'; solver.kind: `convex`: "
        "L-BFGS to the optimum. `adam`: the published recipe.",
    ),
    Refusal(
        "not a number",
        {},
        "train --inference.bias nan",
        "--inference.bias: `inference.bias` is 'nan': input should be a finite number; inference.bias: Shift "
        "added to every toolken logit, on top of the calibrated bias.",
    ),
    Refusal(
        "a number format that is none",
        {},
        "train --inference.result_format zz",
        "--inference.result_format: `inference.result_format` is 'zz': value error, Unknown format code 'z' "
        "for object of type 'float'; inference.result_format: Format of results that are not whole numbers.",
    ),
    Refusal(
        "a section as a value",
        {"c.yaml": "tracking: off\n"},
        "train --config c.yaml",
        "c.yaml:1: `tracking` is a section, not a value; its keys: tracking.mode, tracking.project, "
        "tracking.entity, tracking.group, tracking.tags",
    ),
    Refusal(
        "a flag without a value",
        {},
        "train --solver.l2",
        "--solver.l2: has no value; write `--key value`, or `--key=value` where the value starts with `--`",
    ),
    Refusal(
        "a value without a flag",
        {},
        "train configs.yaml",
        "configs.yaml: belongs to no flag; write `--key value`, and quote values that hold spaces",
    ),
    Refusal(
        "a required flag",
        {},
        "data generate",
        "--output: is required; output: JSONL file with character spans that is written.",
    ),
    Refusal(
        "a key twice",
        {"c.yaml": "name: a\nname: b\n"},
        "train --config c.yaml",
        "c.yaml:2: the key `name` appears twice; the first is in line 1",
    ),
    Refusal(
        "no mapping",
        {"c.yaml": "- a\n"},
        "train --config c.yaml",
        "c.yaml: holds a list where a mapping belongs; write `key: value` lines",
    ),
    Refusal(
        "broken YAML",
        {"c.yaml": "name: x\na: [1\n"},
        "train --config c.yaml",
        "c.yaml:3: not valid YAML: expected ',' or ']', but got '<stream end>'; mind indentation and quotes",
    ),
    Refusal(
        "a tag that constructs",
        {"c.yaml": "name: !!python/object/apply:os.system [ls]\n"},
        "train --config c.yaml",
        "c.yaml:1: not valid YAML: the tag tag:yaml.org,2002:python/object/apply:os.system has no place in "
        "settings; mind indentation and quotes",
    ),
    Refusal(
        "a NUL character",
        {"c.yaml": 'name: "a\\0b"\n'},
        "train --config c.yaml",
        "c.yaml:1: a text holds a NUL character; take it out",
    ),
    Refusal(
        "a variable that is not set",
        {"c.yaml": "data:\n  root: $NO_SUCH_FOLDER/x\n"},
        "train --config c.yaml",
        "c.yaml:2: the environment variable NO_SUCH_FOLDER is not set; export NO_SUCH_FOLDER=... or write the path",
    ),
    Refusal(
        "a file that is missing",
        {"other.yaml": ""},
        "train --config c.yaml",
        "c.yaml: no such file; there are: other.yaml",
    ),
    Refusal(
        "no file named",
        {},
        "train --config",
        "--config: names no file; write `--config FILE.yaml`",
    ),
    Refusal(
        "a folder for a file",
        {"d/": ""},
        "train --config d",
        "d: cannot be read (Is a directory); give a YAML file in UTF-8",
    ),
    Refusal(
        "a binary file",
        {"c.yaml": b"name: a\nx: \xff\xfe"},
        "train --config c.yaml",
        "c.yaml:2: not UTF-8 text (byte 11); save the file as UTF-8",
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=[refusal.name for refusal in REFUSALS])
def test_settings_that_cannot_be_used_are_refused_in_one_line(bench: Bench, refusal: Refusal) -> None:
    bench.check(refusal)
