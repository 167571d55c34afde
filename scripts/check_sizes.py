"""Size caps on modules, classes, functions and handlers: a cap on the tail, without exceptions."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MODULE_LINES, CLASS_LINES, FUNCTION_LINES, HANDLER_LINES = 400, 200, 60, 40
ROOTS = ("layers/core/src", "functions", "scripts", "bench")


def length(node: ast.AST) -> int:
    """Lines from the first to the last of a definition, decorators apart."""
    return (getattr(node, "end_lineno", 0) or 0) - getattr(node, "lineno", 0) + 1


def too_large(path: Path) -> Iterator[str]:
    """Every definition in the file that is over its cap, as a sentence."""
    source = path.read_text("utf-8")
    lines = len(source.splitlines())
    cap = HANDLER_LINES if path.parts[0] == "functions" else MODULE_LINES
    if lines > cap:
        yield f"{path}: {lines} lines, the cap is {cap}"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and length(node) > CLASS_LINES:
            yield f"{path}:{node.lineno}: class {node.name} has {length(node)} lines"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
            length(node) > FUNCTION_LINES
        ):
            yield f"{path}:{node.lineno}: {node.name}() has {length(node)} lines"


def main() -> int:
    """Prints what is over a cap; exit code 1 if anything is."""
    files = (path for root in ROOTS for path in sorted(Path(root).rglob("*.py")))
    found = [problem for path in files for problem in too_large(path)]
    print("\n".join(found) or "sizes: all within the caps")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
