"""A cluster that speaks TLS: certificates on both sides, given on the command line or in Python."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Command
from dask_processes import DaskProcesses

import xcount
from xcount.errors import ClusterError, QueryError
from xcount.model.examples import figure_1

distributed = pytest.importorskip("distributed", reason="clusters need the extra cluster")
OPENSSL = shutil.which("openssl")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(OPENSSL is None, reason="certificates are made with openssl"),
    # Sockets that Dask's threads close late; both are Dask's own.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def openssl(*words: object) -> None:
    """Run openssl."""
    subprocess.run([str(OPENSSL), *map(str, words)], check=True, capture_output=True)


def certified(folder: Path, name: str) -> Path:
    """Make an authority, and a certificate and a key that it signs; return their folder."""
    place = folder / name
    place.mkdir()
    new = ("req", "-newkey", "rsa:2048", "-nodes")
    ca, ca_key = place / "ca.pem", place / "ca-key.pem"
    openssl(*new, "-x509", "-days", 1, "-subj", f"/CN={name}", "-keyout", ca_key, "-out", ca)
    request, key = place / "request.pem", place / "key.pem"
    openssl(*new, "-subj", "/CN=localhost", "-keyout", key, "-out", request)
    signing = ("-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", 1)
    openssl("x509", "-req", "-in", request, *signing, "-out", place / "cert.pem")
    return place


def tls_options(place: Path) -> tuple[str, ...]:
    """Return the three options; those of Dask's commands have the same names."""
    files = {"--tls-ca-file": "ca.pem", "--tls-cert": "cert.pem", "--tls-key": "key.pem"}
    return tuple(word for name, file in files.items() for word in (name, str(place / file)))


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with certificates of one authority."""
    return certified(tmp_path_factory.mktemp("tls"), "ours")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, ours: Path) -> Iterator[DaskProcesses]:
    """A scheduler and a worker that speak only TLS."""
    folder = tmp_path_factory.mktemp("dask")
    security = distributed.Security(
        tls_ca_file=str(ours / "ca.pem"),
        tls_client_cert=str(ours / "cert.pem"),
        tls_client_key=str(ours / "key.pem"),
        require_encryption=True,
    )
    with DaskProcesses(folder, "--protocol", "tls", *tls_options(ours)) as processes:
        processes.add_worker()
        with distributed.Client(
            processes.address, security=security, set_as_default=False
        ) as client:
            client.wait_for_workers(1, timeout=60)
        yield processes


def test_commands_count_on_an_encrypted_cluster(
    secured: DaskProcesses, ours: Path, xcount_command: Command, figure_1_file: str
) -> None:
    """With the three files, count, audit and compare give the answers of one machine."""
    assert secured.address.startswith("tls://")
    asked = ("--gap", "80", "--distance", "1", "--json")
    there = (*asked, "--cluster", secured.address, *tls_options(ours))
    run = xcount_command("count", figure_1_file, "--sensitive", "age", *there)
    assert (run.status, json.loads(run.out)["count"]) == (0, 2)
    run = xcount_command("audit", figure_1_file, *there)
    assert [each["count"] for each in json.loads(run.out)["results"]] == [2, 0]
    run = xcount_command("compare", figure_1_file, figure_1_file, *there)
    assert [each["count"] for each in json.loads(run.out)["rows"][0]["results"]] == [2, 2]


def test_the_key_may_be_in_the_file_of_the_certificate(
    secured: DaskProcesses, ours: Path, tmp_path: Path
) -> None:
    """As in Dask; here in Python."""
    both = tmp_path / "both.pem"
    both.write_bytes((ours / "cert.pem").read_bytes() + (ours / "key.pem").read_bytes())
    found = xcount.count(
        figure_1(),
        sensitive="f0",
        gap=80,
        cluster=secured.address,
        tls_ca_file=str(ours / "ca.pem"),
        tls_cert=str(both),
    )
    assert found.count == 2


def test_strangers_are_refused_in_one_line(
    secured: DaskProcesses, tmp_path: Path, xcount_command: Command, figure_1_file: str
) -> None:
    """Another authority's certificates, or none, do not reach the scheduler."""
    theirs = certified(tmp_path, "theirs")
    asked = ("count", figure_1_file, "--sensitive", "age", "--gap", "80")
    for options, hint in ((tls_options(theirs), "certificate"), ((), "--tls-cert")):
        run = xcount_command(*asked, "--cluster", secured.address, *options)
        assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
        assert f"no Dask scheduler answers at {secured.address}" in run.err
        assert hint in run.err


def test_files_that_cannot_be_used_are_named(
    ours: Path, tmp_path: Path, xcount_command: Command, figure_1_file: str
) -> None:
    """Before a connection is tried: absent files, wrong contents, a key with a password."""
    asked = ("count", figure_1_file, "--sensitive", "age", "--gap", "80")
    locked = tmp_path / "locked.pem"
    openssl("rsa", "-aes256", "-passout", "pass:word", "-in", ours / "key.pem", "-out", locked)
    for name, file in (
        ("--tls-ca-file", tmp_path / "absent.pem"),
        ("--tls-ca-file", figure_1_file),
        ("--tls-cert", tmp_path / "absent.pem"),
        ("--tls-cert", ours / "key.pem"),
        ("--tls-key", figure_1_file),
        ("--tls-key", locked),
    ):
        words = list(tls_options(ours))
        words[words.index(name) + 1] = str(file)
        run = xcount_command(*asked, "--cluster", "tls://127.0.0.1:9", *words)
        assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
        assert str(file) in run.err
        assert f"as {'--tls-ca-file' if 'ca' in name else '--tls-cert'} " in run.err


def test_certificates_need_an_encrypted_address() -> None:
    """No certificate is ignored because the address is a plain one, or another one is missing."""
    with pytest.raises(QueryError, match=r"--tls-cert .* is for an encrypted cluster"):
        xcount.count(figure_1(), sensitive="f0", gap=80, tls_cert="c.pem")
    with pytest.raises(QueryError, match="is for an encrypted cluster"):
        xcount.audit(figure_1(), gaps=80, cluster="tcp://127.0.0.1:9", tls_ca_file="ca.pem")
    with pytest.raises(QueryError, match="needs --tls-cert"):
        xcount.audit(figure_1(), gaps=80, cluster="tls://127.0.0.1:9", tls_ca_file="ca.pem")
    with pytest.raises(ClusterError, match=r"absent\.pem as --tls-ca-file .*: No such file"):
        xcount.compare(
            [figure_1(), figure_1()],
            gaps=80,
            cluster="tls://127.0.0.1:9",
            tls_ca_file="absent.pem",
            tls_cert="absent.pem",
        )
