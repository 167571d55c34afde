"""`instar`, or `python -m instar`: opens a home or a URL for the command line."""

import sys

from instar import config
from instar.cli.door import Door, Serve
from instar.cli.flags import Flags
from instar.cli.main import run
from instar.ids import MAIN_AGENT, AgentId, agent_id


def _agent(flags: Flags) -> AgentId:
    return MAIN_AGENT if flags.agent is None else agent_id(flags.agent)


def _open_door(flags: Flags) -> Door:
    environ = config.environment()
    url = flags.url or ("" if flags.home else environ.get("INSTAR_URL", ""))
    if url:
        from instar.wiring.url import open_url  # noqa: PLC0415  a home needs no HTTP client

        return open_url(url, environ)
    from instar.wiring.embedded import Embedded  # noqa: PLC0415  a URL needs no engine
    from instar.wiring.home_door import HomeDoor  # noqa: PLC0415

    return HomeDoor(Embedded.open(flags.home, _agent(flags), environ))


def _serve(flags: Flags) -> Serve:
    def serve(host: str, allowed: tuple[str, ...], port: int | None) -> None:
        from instar.wiring.embedded import Embedded  # noqa: PLC0415  only serving needs the web
        from instar.wiring.serve import serve as serve_home  # noqa: PLC0415

        home = Embedded.open(flags.home, _agent(flags), config.environment())
        serve_home(home, host, allowed, port)

    return serve


def main() -> None:
    """The command's entry point."""
    sys.exit(run(sys.argv[1:], _open_door, _serve))


if __name__ == "__main__":
    main()
