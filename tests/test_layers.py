"""The house rules that can be read off the source: imports point down, no circles, small files, nothing evaluated."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "toolken"
FILES = sorted(PACKAGE.rglob("*.py"))

# Lowest first. A module may import its own layer and those before it.
LAYERS = [
    {"errors", "metrics", "files", "hub", "locks"},
    {"config"},
    {"settings"},
    {"tools"},
    {"data"},
    {"model"},
    {"training"},
    {"inference"},
    {"evaluation"},
    {"run_directory", "stages", "tracking"},
    {"recipes"},
    {"bench"},
    {"commands"},
    {"cli", "__init__"},
]


# What turns a name into a module, and the files that may: a user's flag, a function of the user's own, lazy names.
IMPORTING = {"import_module", "exec_module", "spec_from_file_location", "run_path", "run_module"}
MAY_IMPORT = {"toolken/__init__.py", "toolken/cli.py", "toolken/tools/loading.py", "toolken/tools/worker.py"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def layer(module: str) -> int:
    part = module.split(".")[1] if "." in module else "__init__"
    for rank, names in enumerate(LAYERS):
        if part in names:
            return rank
    raise AssertionError(f"{module} belongs to no layer of tests/test_layers.py")


def internal_imports(tree: ast.AST) -> list[ast.Import | ast.ImportFrom]:
    found: list[ast.Import | ast.ImportFrom] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "toolken":
            found.append(node)
        elif isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "toolken" for alias in node.names):
            found.append(node)
    return found


def imported_modules(path: Path) -> set[str]:
    names: set[str] = set()
    for node in internal_imports(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
            continue
        for alias in node.names:
            submodule = f"{node.module}.{alias.name}"
            file = ROOT.joinpath(*submodule.split("."))
            names.add(submodule if file.with_suffix(".py").exists() or file.is_dir() else str(node.module))
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    here = module_name(path)
    above = [name for name in imported_modules(path) if layer(name) > layer(here)]
    assert not above, f"{here} imports from above: {above}"


def test_no_import_circles() -> None:
    graph = {module_name(path): imported_modules(path) for path in FILES}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail[trail.index(name) :], name])
        if name in done:
            return
        for below in graph.get(name, ()):
            visit(below, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_package_import_inside_a_function(path: Path) -> None:
    tree = ast.parse(path.read_text())
    top = {id(node) for node in tree.body}
    typed = {id(n) for node in tree.body if isinstance(node, ast.If) for n in node.body}
    inside = [node.lineno for node in internal_imports(tree) if id(node) not in top | typed]
    assert not inside, f"lines {inside}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_fit_three_hundred_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 300


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_functions_fit_a_screen(path: Path) -> None:
    limit = 80 if path.parent.name == "recipes" else 50  # a recipe reads top to bottom
    long = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.end_lineno and node.end_lineno - node.lineno >= limit:
            long.append(f"{node.name}: {node.end_lineno - node.lineno + 1} lines")
    assert not long


@pytest.mark.parametrize("path", [*FILES, ROOT / "train.py", ROOT / "infer.py"], ids=lambda p: str(p.relative_to(ROOT)))
def test_law_11_nothing_is_evaluated(path: Path) -> None:
    banned_calls = {"eval", "exec", "compile", "__import__"}
    banned_modules = {"pickle", "cPickle", "dill", "marshal", "shelve", "joblib"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in banned_calls, f"line {node.lineno}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            dotted = ast.unparse(node.func)
            assert dotted not in {"torch.load", "os.system", "os.popen", "yaml.load", "yaml.unsafe_load"}, dotted
            assert node.func.attr not in IMPORTING or str(path.relative_to(ROOT)) in MAY_IMPORT, dotted
            shell = [k for k in node.keywords if k.arg == "shell" and ast.unparse(k.value) != "False"]
            trust = [k for k in node.keywords if k.arg == "trust_remote_code" and ast.unparse(k.value) != "False"]
            assert not shell and not trust, f"line {node.lineno}"
        if isinstance(node, ast.Import):
            assert not banned_modules & {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in banned_modules
            assert not {"system", "popen"} & {alias.name for alias in node.names}
            if IMPORTING & {alias.name for alias in node.names}:
                assert str(path.relative_to(ROOT)) in MAY_IMPORT, f"line {node.lineno}"
