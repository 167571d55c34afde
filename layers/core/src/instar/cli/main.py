"""From the words of a command line to an exit code: 0 done, 1 refused, 2 usage, 3 unavailable."""

import sys
from collections.abc import Callable, Sequence

import click

from instar.cli.commands import Session, instar
from instar.cli.door import Door, Serve
from instar.cli.flags import Flags, UsageError, split_flags
from instar.cli.output import EXIT_DONE, EXIT_USAGE, print_error
from instar.errors import InstarError


def run(
    arguments: Sequence[str],
    open_door: Callable[[Flags], Door],
    serve: Callable[[Flags], Serve],
) -> int:
    """Runs one command; the factories open a home or a URL when the command needs it."""
    flags = Flags()
    try:
        flags, words = split_flags(arguments)
        session = Session(flags, lambda: open_door(flags), serve(flags))
        instar.main(words, "instar", standalone_mode=False, obj=session)
    except InstarError as error:
        return print_error(error, as_json=flags.json)
    except (click.UsageError, UsageError) as error:
        text = error.format_message() if isinstance(error, click.UsageError) else str(error)
        sys.stderr.write(f"instar: {text}\nSee `instar --help`.\n")
        return EXIT_USAGE
    except (KeyboardInterrupt, click.Abort):
        return 130
    except BrokenPipeError:
        return EXIT_DONE
    return EXIT_DONE
