"""Exporter `minari`: a store as a Minari data set, the form in which offline RL passes its episodes around.

    shop-r1 export minari stores/mine --out datasets
    MINARI_DATASETS_PATH=datasets python -c "import minari; print(minari.load_dataset('shopr1/mine/human-v0'))"

One episode a session, one step a logged action, the first included. An action is the reply that a perfect agent would
have given; rewards are those that ShopR1-v0 paid for it while the episode was recorded. An observation is page, goal,
persona and step; the history is left out, because it is the episode so far. Each episode's metadata hold the options
that reset the recovered env to its session:

    env = dataset.recover_environment()
    for episode, about in zip(dataset.iterate_episodes(), dataset.storage.get_episode_metadata(range(len(dataset)))):
        env.reset(seed=about["seed"], options=about["options"])      # then step through episode.actions
"""

import json
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

import gymnasium
import msgspec
from gymnasium import spaces

from replay_sessions.foundation.durable_files import writing
from replay_sessions.foundation.errors import BadConfig, MissingExtra
from replay_sessions.schema import Split, Step, written_action
from replay_sessions.store import SessionStore
from replay_sessions.store.work_folder import WorkFolder

# Named, not imported: the env stands on the store and not the other way round. Gymnasium imports it.
_ENV_ID = "shop_env:ShopR1-v0"
_PATH_VARIABLE = "MINARI_DATASETS_PATH"
_MARKER = "data/metadata.json"
_KEYS = ("page", "goal", "persona", "step")
_MAX_STEPS = 2**31 - 1
_NOT_WORD = re.compile(r"[^\w-]+")
_EXAMPLES = """\
  shop-r1 export minari stores/mine --out datasets
  MINARI_DATASETS_PATH=datasets python -c \\
    "import minari; print(minari.load_dataset('shopr1/mine/human-v0'))\""""


class MinariExporter(msgspec.Struct, frozen=True):
    """Writes a Minari data set.

    Attributes:
        out: The folder of Minari's data sets; None: MINARI_DATASETS_PATH, or Minari's own.
        name: The middle of the id shopr1/NAME/human-v0; None: the store's name.
        split: Which sessions are written.
        overwrite: Replace the data set of that id.
    """

    examples: ClassVar[str] = _EXAMPLES

    out: Path | None = None
    name: str | None = None
    split: Split | Literal["all"] = "all"
    overwrite: bool = False

    def export(
        self, store: SessionStore, on_progress: Callable[[int], None] = lambda _: None, *, store_name: str | None = None
    ) -> list[str]:
        minari = _minari()
        store_name = store_name or str(store.path)
        dataset_id = f"shopr1/{_dataset_name(self.name or Path(store_name).name)}/human-v0"
        with _datasets_path(self.out):
            folder = Path(minari.storage.get_dataset_path(dataset_id))
            # Minari would write the data set where it is to be, and half of one would load.
            with WorkFolder(folder, overwrite=self.overwrite, marker=_MARKER) as work, writing(folder):
                env = gymnasium.make(
                    _ENV_ID,
                    store=store_name,
                    split=self.split,
                    order="storage",
                    skip_first_action=False,
                    inferred=True,
                )
                with _datasets_path(work.path / "datasets"):
                    dataset = _create(minari, env, dataset_id, store, on_progress)
                    episodes, steps = dataset.total_episodes, dataset.total_steps
                    Path(minari.storage.get_dataset_path(dataset_id)).replace(work.new)
                work.commit()
            namespace = dataset_id.rpartition("/")[0]
            if namespace not in minari.namespace.list_local_namespaces():
                minari.namespace.create_namespace(namespace)
        prefix = f"{_PATH_VARIABLE}={self.out} " if self.out else ""
        return [
            f"{folder}: {episodes:,} episodes, {steps:,} steps",
            f"  {prefix}python -c \"import minari; print(minari.load_dataset('{dataset_id}'))\"",
            f"  its recover_environment() opens the store as '{store_name}'",
        ]


def _minari() -> Any:
    try:
        import minari  # noqa: PLC0415 - the extra minari is optional
        import minari.data_collector  # noqa: PLC0415 - the extra minari is optional
        import minari.storage  # noqa: PLC0415 - the extra minari is optional
        from minari.dataset._storages import arrow_storage  # noqa: F401, PLC0415 - loads what the extra's arrow brings
    except ImportError as error:
        raise MissingExtra(f"export minari needs Minari ({error}): pip install 'shop-r1[minari]'") from error
    return minari


@contextmanager
def _datasets_path(out: Path | None) -> Iterator[None]:
    """Sets the folder of Minari's data sets, which it takes from the process's environment alone."""
    before = os.environ.get(_PATH_VARIABLE)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        os.environ[_PATH_VARIABLE] = str(out.absolute())
    try:
        yield
    finally:
        os.environ.pop(_PATH_VARIABLE, None)
        if before is not None:
            os.environ[_PATH_VARIABLE] = before


def _spaces(store: SessionStore) -> tuple[spaces.Dict, spaces.Text]:
    """Builds spaces that Minari knows: Gymnasium's text space must know all characters and the longest text."""
    characters: dict[str, set[str]] = {key: set() for key in ("page", "goal", "persona", "reply")}
    longest = dict.fromkeys(characters, 1)
    for session in store.sessions():
        texts = [("goal", session.goal or ""), ("persona", session.persona.text if session.persona else "")]
        for step in session.steps:
            texts += [("page", step.page), ("reply", _reply(step))]
        for key, text in texts:
            characters[key].update(text)
            longest[key] = max(longest[key], len(text))
    text_spaces = {
        key: spaces.Text(longest[key], min_length=0, charset="".join(sorted(charset or {" "})))
        for key, charset in characters.items()
    }
    reply = text_spaces.pop("reply")
    return spaces.Dict({**text_spaces, "step": spaces.Discrete(_MAX_STEPS)}), reply


def _reply(step: Step) -> str:
    """Writes the reply that repeats the log, as `shop_env.format_reply` does."""
    return json.dumps({"rationale": step.rationale or "", "action": written_action(step.action)}, ensure_ascii=False)


def _create(minari: Any, env: Any, dataset_id: str, store: SessionStore, on_progress: Callable[[int], None]) -> Any:
    observation_space, action_space = _spaces(store)
    session_ids = env.unwrapped.session_ids
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one for each thing that only a publisher can say of a data set
        dataset = minari.create_dataset_from_buffers(
            dataset_id=dataset_id,
            buffer=_episodes(minari, env, store, session_ids, on_progress),
            env=env,
            eval_env=env.unwrapped.spec,
            observation_space=observation_space,
            action_space=action_space,
            algorithm_name=f"none: logged ({store.manifest.source})",
            description=(
                f"Shopping sessions of {store.manifest.source} (store fingerprint {store.fingerprint}), replayed in "
                "ShopR1-v0 with the logged actions. The history is the episode so far. Reset the recovered env with an "
                "episode's own options to replay it."
            ),
            data_format="parquet",
        )
    about = [
        {"session_id": name, "user_id": store.user_id(name), "split": store.split_of(name)} for name in session_ids
    ]
    dataset.storage.update_episode_metadata(about, range(len(about)))
    return dataset


def _episodes(
    minari: Any, env: Any, store: SessionStore, session_ids: list[str], on_progress: Callable[[int], None]
) -> Iterator[Any]:
    """Replays each session with its logged actions; one episode at a time is in memory."""
    for number, session_id in enumerate(session_ids):
        options = {"session_id": session_id}
        first, _ = env.reset(seed=0, options=options)
        replies = [_reply(step) for step in store.session(session_id).steps]
        observations, rewards, terminations, truncations, _ = zip(*map(env.step, replies), strict=True)
        yield minari.data_collector.EpisodeBuffer(
            id=number,
            seed=0,
            options=options,
            observations={key: [observation[key] for observation in (first, *observations)] for key in _KEYS},
            actions=replies,
            rewards=list(rewards),
            terminations=list(terminations),
            truncations=list(truncations),
        )
        on_progress(1)


def _dataset_name(store_name: str) -> str:
    name = _NOT_WORD.sub("_", store_name).strip("_-")
    if not name:
        raise BadConfig(f"{store_name!r} holds no letter or digit that a Minari id could hold: give --name")
    return name
