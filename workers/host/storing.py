"""Brings checkpoints and artifacts out of the run folder into the artifact store, while the job trains and after it.

Nothing here makes the training wait. A store that is away or full is tried again, ever more rarely; only when the gang
has ended is there an end to that, and then the journal says where the files lie.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from workers.contract.events import NotStored, Stored
from workers.contract.kinds import PREDICTIONS
from workers.contract.store import artifact_key, checkpoint_key
from workers.host.journal import Journal, Kind
from workers.host.runs import RunFolder
from workers.host.verdict import cut

if TYPE_CHECKING:
    from workers.contract.store import Store

ARTIFACTS = ("model.keras", "saved_model.zip", PREDICTIONS)
MANIFEST = "manifest.json"
LOOK_SECONDS = 0.5
LONGEST_BACK_OFF = 15.0
PATIENCE_SECONDS = 60.0
"""After the gang's end a store that has failed for so long is waited for no more."""

log = logging.getLogger(__name__)


class Item(NamedTuple):
    """What is to be kept: a checkpoint's folder or an artifact's file, and its key in the store."""

    kind: Kind
    name: str
    path: Path
    key: str

    @property
    def there(self) -> bool:
        """Whether it is still whole here: the engine may have dropped it for newer ones."""
        return (self.path / MANIFEST).exists() if self.kind == "checkpoint" else self.path.exists()

    def files(self) -> list[tuple[Path, str]]:
        """Local files and their keys, the manifest last: a reader that finds it finds all."""
        if self.kind == "artifact":
            return [(self.path, self.key)]
        found = [path for path in sorted(self.path.rglob("*")) if path.is_file()]
        found.sort(key=lambda path: path == self.path / MANIFEST)
        return [(path, f"{self.key}/{path.relative_to(self.path).as_posix()}") for path in found]


class Storing:
    """Started late, like the shipper: a thread in the supervisor while it forks could leave a locked lock behind."""

    def __init__(self, run: RunFolder, url: str, journal: Journal, patience: float = PATIENCE_SECONDS) -> None:
        self._run = run
        self._url = url
        self._journal = journal
        self._patience = patience
        self._job = 0
        self._kept: set[tuple[Kind, str]] = set()
        self._told_lost: set[tuple[Kind, str]] = set()
        self._store: Store | None = None
        self._thread = threading.Thread(target=self._work, name="storing", daemon=True)
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._finishing = self._abandoned = self._complete = False
        self._failing_since: float | None = None
        self._cause = ""

    def start(self, job: int) -> None:
        """Keep what the run folder of `job` holds and will hold; does nothing when it was started before."""
        if self._thread.ident is not None:
            return
        self._job = job
        events = self._journal.read()
        self._kept = {(event.kind, event.name) for event in events if isinstance(event, Stored)}
        self._told_lost = {(event.kind, event.name) for event in events if isinstance(event, NotStored)}
        self._thread.start()

    def finish(self) -> None:
        """No file is added any more."""
        self._finishing = True
        self._woken.set()

    @property
    def over(self) -> bool:
        """Whether all is kept, or the store has failed for too long."""
        since = self._failing_since
        return self._complete or (since is not None and time.monotonic() - since > self._patience)

    def conclude(self, why: str = "") -> None:
        """Nothing is tried any more; what is not in the store is told with `why`, else with the store's own words."""
        with self._lock:
            self._abandoned = True
            self._woken.set()
            left = self._pending()
            for item in left:
                cause = cut(why or self._cause or "the store took too long", 500)
                log.error(
                    "attempt %s: %s %s lies only at %s: %s", self._run.attempt, item.kind, item.name, item.path, cause
                )
                if (item.kind, item.name) not in self._told_lost:
                    self._journal.not_stored(kind=item.kind, name=item.name, path=item.path, cause=cause)
            if not left:
                self._run.stored_file.touch()

    def _work(self) -> None:
        back_off = 0.0
        while not self._abandoned and not self._complete:
            finishing = self._finishing
            failed = [item for item in self._pending() if not self._keep(item)]
            if failed:
                back_off = min(max(2 * back_off, LOOK_SECONDS), LONGEST_BACK_OFF)
            elif finishing:
                self._complete = True
                return
            else:
                back_off = 0.0
            self._woken.wait(back_off or LOOK_SECONDS)
            self._woken.clear()

    def _pending(self) -> list[Item]:
        """What is whole here and not yet in the store, oldest first."""
        items = []
        for folder in sorted(self._run.checkpoints.glob("step-*"), key=lambda path: (len(path.name), path.name)):
            items.append(Item("checkpoint", folder.name, folder, checkpoint_key(self._job, folder.name)))
        for name in ARTIFACTS:
            items.append(Item("artifact", name, self._run.path / name, artifact_key(self._job, name)))
        return [item for item in items if (item.kind, item.name) not in self._kept and item.there]

    def _keep(self, item: Item) -> bool:
        """Put it into the store and say so; False when it has to be tried again."""
        try:
            size = self._put(item)
        except Exception as error:  # noqa: BLE001  each file system behind fsspec has errors of its own
            return self._failed(item, error)
        self._failing_since = None
        with self._lock:
            if not self._abandoned:
                self._kept.add((item.kind, item.name))
                self._journal.stored(kind=item.kind, name=item.name, size=size)
        return True

    def _put(self, item: Item) -> int:
        from workers.contract.store import Store

        if self._store is None:
            self._store = Store(self._url)
        if item.kind == "checkpoint":
            self._store.remove(item.key)  # of an earlier attempt, or half of it by a supervisor that died
        size = 0
        for path, key in item.files():
            self._store.put(path, key)
            size += path.stat().st_size
        return size

    def _failed(self, item: Item, error: Exception) -> bool:
        if not item.there:
            self._drop_half(item)
            return True
        if self._failing_since is None:
            self._failing_since = time.monotonic()
            log.warning("attempt %s: cannot store %s: %s; trying again", self._run.attempt, item.name, error)
        self._cause = f"{self._url} failed: {error}"
        return False

    def _drop_half(self, item: Item) -> None:
        """The engine dropped it while it was on its way; what of it has arrived is of no use."""
        try:
            if self._store is not None:
                self._store.remove(item.key)
        except Exception as error:  # noqa: BLE001  without its manifest nobody takes it for a checkpoint
            log.warning("attempt %s: half of %s stays in the store: %s", self._run.attempt, item.name, error)
