"""What `sluice doctor` asks of the feeder: whether it comes up, what it can do, and in a pod how many data workers it has."""

from __future__ import annotations

import contextlib
import re
import urllib.request
from dataclasses import replace

from sluice.base.settings import SettingError, Settings
from sluice.explain.examination import Check, Place

METRICS_PORTS = range(9464, 9484, 2)  # Where the operator puts them: the first pair that the pod's containers do not use.
_ANSWER_SECONDS = 2.0
_MOST_BYTES = 1 << 20
_PATIENCE_SECONDS = 10.0


def feeder(place: Place) -> Check:
    """Connects to it as a loader would: the pod's, or one that is started for this."""
    try:
        settings = Settings.from_environment(place.environment)
    except SettingError:
        return Check("feeder", False, "not tried", "mend the settings first")
    try:
        from sluice.feeder.choice import NoFeeder, disconnect_all, shared_connection
    except ImportError as error:
        return Check("feeder", False, f"not tried: {error}", "install what is missing above")
    settings = replace(settings, start_patience_seconds=min(settings.start_patience_seconds, _PATIENCE_SECONDS))
    try:
        connection = shared_connection(settings)
        if not connection.wait_connected(settings.start_patience_seconds):
            return Check("feeder", False, f"{connection.where}: {connection.trouble or 'no answer'}", _where_to_look(settings))
        session = connection.session
        memory = f", {session.arena.size_bytes >> 20} MiB for batches" if session is not None else ""
        return Check("feeder", True, f"{connection.where} answers{memory}")
    except NoFeeder as error:
        return Check("feeder", False, str(error), _where_to_look(settings))
    finally:
        disconnect_all()


def _where_to_look(settings: Settings) -> str:
    if settings.feeder_socket is not None:
        return "in a pod: kubectl logs POD -c sluice-feeder; elsewhere unset SLUICE_FEEDER_SOCKET"
    if settings.feeder_binary is not None:
        return f"{settings.feeder_binary} --help has to work; without SLUICE_FEEDER_BINARY the installation's own feeder is used"
    return "install the wheel of this machine's kind: make wheel, pip install build/wheel/*.whl"


def image_library(place: Place) -> Check:
    """What makes the pixels of data sets that open JPEGs by themselves."""
    from sluice.media.image_library import ImageLibrary, image_library_paths

    paths = image_library_paths(place.environment)
    for path in paths:
        with contextlib.suppress(OSError):
            ImageLibrary(path)
            return Check("native images", True, str(path))
    finding = f"{paths[0]} does not fit this Python's C library" if paths else "the library is not beside the feeder"
    return Check("native images", True, finding, "Pillow makes the images of Dataset classes of one's own; ImageFolder is not concerned")


def data_workers(place: Place, ports: range = METRICS_PORTS) -> Check:
    """Of the TrainingJob that this pod belongs to, by the words of the pod's feeder."""
    job = place.environment.get("SLUICE_JOB", "")
    if not job or "SLUICE_FEEDER_SOCKET" not in place.environment:
        return Check("data workers", True, "not in a pod of a TrainingJob: batches are made on this machine")
    why = f"kubectl sluice why {job} -n {place.environment.get('SLUICE_NAMESPACE', 'default')}"
    page = next((page for port in ports if "sluice_feeder_remote_workers" in (page := _metrics(port))), "")
    if not page:
        return Check("data workers", True, "the feeder's metrics are at none of its usual ports", why)
    refused = _value(page, "sluice_feeder_refused_workers_total")
    if refused:
        return Check("data workers", False, f"{refused:.0f} connections to data workers of another version", "restart the job's pods, so that all have the same bundle")
    workers = _value(page, "sluice_feeder_remote_workers")
    return Check("data workers", True, f"{workers:.0f} are connected", "" if workers else f"whether the job should have some: {why}")


def _metrics(port: int) -> str:
    """"" where nothing answers. Past any proxy: the feeder shares the pod's loopback."""
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=_ANSWER_SECONDS) as answer:
            return answer.read(_MOST_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return ""


def _value(page: str, series: str) -> float:
    """The sum over its labels."""
    return sum(float(number) for number in re.findall(rf"^{series}(?:\{{[^}}]*\}})? ([0-9.e+]+)", page, re.MULTILINE))
