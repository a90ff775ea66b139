"""The exporter `minari`: writes a store as a Minari data set, the format of offline RL for episodes.

    shop-r1 export minari stores/mine --out datasets
    MINARI_DATASETS_PATH=datasets python -c "import minari; print(minari.load_dataset('shopr1/mine/human-v0'))"

Each session is an episode, and each logged action a step, including the first. An action is the reply that a perfect
agent would give, and its reward is ShopR1-v0's reward during the recording of the episode. An observation is page,
goal, persona and step. It has no history, because the history is the episode so far. Minari reads all files after each
episode, so 1,000 sessions take a minute and 8,000 an hour (`--split` selects fewer). Each episode's metadata have the
options that reset the recovered env to its session:

    env = dataset.recover_environment()
    for episode, about in zip(dataset.iterate_episodes(), dataset.storage.get_episode_metadata(range(len(dataset)))):
        env.reset(seed=about["seed"], options=about["options"])      # then step through episode.actions
"""

import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import gymnasium
from gymnasium import spaces

from replay_sessions.foundation.durable_files import writing
from replay_sessions.foundation.plugins import requires_extra
from replay_sessions.foundation.progress import track
from replay_sessions.schema import Session, Split, Step, written_action
from replay_sessions.store import SessionStore
from replay_sessions.store.work_folder import WorkFolder

_PATH_VARIABLE = "MINARI_DATASETS_PATH"
_MARKER = "shopr1/namespace_metadata.json"  # a file that Minari writes
_KEYS = ("page", "goal", "persona", "step")


def export_for_minari(
    store: SessionStore,
    out: Path,
    *,
    store_name: str,
    split: Split | Literal["all"] = "all",
    overwrite: bool = False,
) -> str:
    """Writes a folder with one Minari data set, completely or not at all, and returns the data set's id.

    Args:
        store_name: `demo`, or the path by which the recovered env opens the store; it also names the data set.
        overwrite: Whether to replace an earlier export.
    """
    with requires_extra("minari"):
        import minari.data_collector  # noqa: PLC0415 - an extra that may be missing
        import PIL  # noqa: F401, PLC0415 - Minari's parquet files need it, and its own extras do not bring it
    dataset_id = f"shopr1/{re.sub(r'[^a-zA-Z0-9]+', '_', Path(store_name).name)}/human-v0"
    # Named, not imported, because shop_env depends on this package. Gymnasium imports it.
    options: dict[str, Any] = {"store": store_name, "split": split, "first_action": True, "inferred": True}
    env: Any = gymnasium.make("shop_env:ShopR1-v0", **options)
    session_ids = env.unwrapped.session_ids
    episodes = (_replay(env, store.session(session_id)) for session_id in track(session_ids, "exporting"))
    observation_space, action_space = _build_spaces(store)
    with WorkFolder(out, overwrite=overwrite, marker=_MARKER) as work, writing(out), _datasets_path(work.new):
        dataset = minari.create_dataset_from_buffers(
            dataset_id,
            (minari.data_collector.EpisodeBuffer(id=number, **episode) for number, episode in enumerate(episodes)),
            env=env,
            observation_space=observation_space,
            action_space=action_space,
            description=f"Sessions of {store.manifest.source}, store fingerprint {store.fingerprint}",
            data_format="parquet",
        )
        metadata = [{"user_id": store.user_id(key), "split": store.split_of(key)} for key in session_ids]
        dataset.storage.update_episode_metadata(metadata)
        work.commit()
    return dataset_id


@contextmanager
def _datasets_path(folder: Path) -> Iterator[None]:
    """Sets the folder of Minari's data sets and silences Minari's warnings.

    Minari only reads the folder from the environment.
    """
    before = os.environ.get(_PATH_VARIABLE)
    os.environ[_PATH_VARIABLE] = str(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a warning for each field that only a publisher can fill in
            yield
    finally:
        del os.environ[_PATH_VARIABLE]
        if before is not None:
            os.environ[_PATH_VARIABLE] = before


def _build_spaces(store: SessionStore) -> tuple[spaces.Dict, spaces.Text]:
    """Builds the observation and action spaces.

    Gymnasium's text space must know all characters and the longest text.
    """
    characters, longest = {" "}, 1
    for session in store.sessions():
        texts = [session.goal or "", session.persona.text if session.persona else ""]
        for text in texts + [text for step in session.steps for text in (step.page, _format_reply(step))]:
            characters.update(text)
            longest = max(longest, len(text))
    text_space = spaces.Text(longest, min_length=0, charset="".join(sorted(characters)))
    return spaces.Dict(dict.fromkeys(_KEYS, text_space) | {"step": spaces.Discrete(2**31 - 1)}), text_space


def _format_reply(step: Step) -> str:
    """Formats the reply that repeats the logged action, as `shop_env.format_reply` does."""
    return json.dumps({"rationale": step.rationale or "", "action": written_action(step.action)}, ensure_ascii=False)


def _replay(env: Any, session: Session) -> dict[str, Any]:
    """Steps the env through a session's logged actions and returns the fields of its EpisodeBuffer."""
    start = {"seed": 0, "options": {"session_id": session.session_id}}
    first, _ = env.reset(**start)
    actions = [_format_reply(step) for step in session.steps]
    observations, *outcomes, _ = map(list, zip(*map(env.step, actions), strict=True))
    return start | {
        "observations": {key: [observation[key] for observation in (first, *observations)] for key in _KEYS},
        "actions": actions,
        **dict(zip(("rewards", "terminations", "truncations"), outcomes, strict=True)),
    }
