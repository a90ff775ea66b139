"""Takes a picture of a report with Chromium, such as the one in the README.

  python -m benchmarks.studies.readme.screenshot runs/mine/report.html \\
    --out docs/report.png
  python -m benchmarks.studies.readme.screenshot runs/mine/report.html \\
    --at "#session/s1/2" --width 390 --height 844 --dark --out phone.png
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import tyro

from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.errors import BadConfig, MissingExtra
from replay_sessions.foundation.records import Record

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WAIT_MS = 3000  # of the page's own clock, for what it inflates


class ScreenshotOptions(Record):
    """What to take.

    Attributes:
        report: The file that `python -m benchmarks.report` wrote.
        out: The PNG to write.
        at: The part of the address behind the file, such as #session/ID/STEP.
        dark: With the dark colours.
    """

    report: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="REPORT")]]
    out: Path
    at: str = ""
    width: int = 1280
    height: int = 800
    dark: bool = False


def _take(options: ScreenshotOptions) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise MissingExtra(f"a screenshot needs one of {', '.join(BROWSERS)}: apt-get install chromium")
    if not options.report.is_file():
        raise BadConfig(f"there is no report '{options.report}': python -m benchmarks.report RUN writes one")
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
            f"--window-size={options.width},{options.height}",
            f"--virtual-time-budget={WAIT_MS}",
            f"--screenshot={options.out.resolve()}",
            *(["--blink-settings=preferredColorScheme=0"] if options.dark else []),
            options.report.resolve().as_uri() + options.at,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode or not options.out.is_file():
        raise BadConfig(f"{browser} took no picture: {done.stderr.strip().splitlines()[-1:]}")
    print(options.out)


main = command(ScreenshotOptions, _take)

if __name__ == "__main__":
    sys.exit(main())
