"""Every case of tests/corpora/ssrf_vectors.json through the tool, over real loopback servers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from midturn_core.tool import InvalidInputError, ToolResult
from midturn_tools._web_address import AddressRefusedError, literal_address, parse_web_address
from midturn_tools.http import Network
from midturn_tools.web_fetch import WebFetchTool
from tests.support.tool_context import make_tool_context
from tests.support.web_server import (
    Certificate,
    Detour,
    Names,
    Seen,
    WebServer,
    answer,
    make_certificate,
    redirect,
    serving,
    tool_on,
)

CORPUS = Path(__file__).parents[1] / "corpora" / "ssrf_vectors.json"
CASES: list[dict[str, Any]] = json.loads(CORPUS.read_text(encoding="ascii"))["cases"]


def case_id(case: dict[str, Any]) -> str:
    return str(case["id"])


def _https_names() -> Iterator[str]:
    for case in CASES:
        try:
            address = parse_web_address(case["url"])
        except AddressRefusedError:
            continue
        if address.scheme == "https":
            kind = "DNS" if literal_address(address.host) is None else "IP"
            yield f"{kind}:{address.host}"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    names = sorted(set(_https_names()))
    return make_certificate(tmp_path_factory.mktemp("certificate"), names)


@dataclass
class Bench:
    tool: WebFetchTool
    network: Detour
    names: Names
    servers: tuple[WebServer, WebServer]

    @property
    def requests(self) -> list[Seen]:
        return [seen for server in self.servers for seen in server.requests]


@asynccontextmanager
async def bench(case: dict[str, Any], certificate: Certificate) -> AsyncGenerator[Bench]:
    hops = [redirect(hop["location"], hop["status"]) for hop in case.get("hops", ())]
    answers = iter(hops)

    async def answer_next(_: Seen, writer: Any) -> None:
        writer.write(next(answers, answer(b"the page")))

    tls = certificate.server()
    async with serving(handler=answer_next) as plain, serving(None, answer_next, tls) as secure:
        network = Detour(
            {80: plain.port, 8080: plain.port, 443: secure.port, 8443: secure.port},
            dead=frozenset({"93.184.216.34"} if case["id"] == "ssrf-rb-05" else ()),
        )
        names = Names(case.get("dns", {}))
        tool = tool_on(Network(names, network, certificate.trust()))
        yield Bench(tool, network, names, (plain, secure))


async def fetch_on(tool: WebFetchTool, url: str, folder: Path) -> ToolResult:
    """Fetch as a model would that follows every redirect to another host."""
    for _ in range(20):
        try:
            tool.validate({"url": url})
        except InvalidInputError as error:
            return ToolResult(error=str(error))
        result = await tool.run({"url": url}, make_tool_context(folder))
        if not result.summary.startswith("redirects to"):
            return result
        url = (result.output or "").rpartition(" ")[2]
    raise AssertionError("it never ends")


def refused_addresses(case: dict[str, Any]) -> set[str]:
    """Everything in the script that is not among the public addresses of the corpus."""
    scripted: set[str] = {
        address
        for answers in case.get("dns", {}).values()
        for addresses in answers
        for address in addresses
    }
    return {a for a in scripted if not a.startswith(("93.184.", "151.101.", "2606:"))}


@pytest.mark.parametrize("case", CASES, ids=case_id)
async def test_a_case_of_the_corpus_gets_its_verdict(
    case: dict[str, Any], certificate: Certificate, tmp_path: Path
) -> None:
    async with bench(case, certificate) as at:
        result = await fetch_on(at.tool, case["url"], tmp_path)
    verdict = "block" if result.error else "allow"
    assert verdict in (case["expected"], *case.get("also_ok", ())), result.error or result.output
    dialled = [address for address, _ in at.network.dialled]
    assert not refused_addresses(case) & set(dialled)
    if verdict == "allow":
        assert "the page" in (result.output or "")
    else:
        # A refused first address saw no connection; a refused hop ends the chain.
        assert len(at.requests) <= len(case.get("hops", ()))
        assert case.get("hops") or not dialled
    _check_demands(case, at, dialled)


def _check_demands(case: dict[str, Any], at: Bench, dialled: Sequence[str]) -> None:
    if "must_connect_only_to" in case:
        assert set(dialled) <= set(case["must_connect_only_to"])
        assert len(at.names.asked) == 1
    if "must_send_host" in case:
        assert at.requests[0].headers["host"] == case["must_send_host"]
    if "must_use_sni" in case:
        assert at.requests[0].sni == case["must_use_sni"]
    if "blocked_at_hop" in case:
        assert len(at.requests) <= case["blocked_at_hop"]
