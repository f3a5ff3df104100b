"""Headless Chromium against the real web server, which holds no password but the read roles' and the session's."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.wait import WebDriverWait

from config.owners import Role, owner_roles
from tests.admin.conftest import (  # noqa: F401  (fixtures)
    NAME,
    PASSWORD,
    make_operator,
    quick_hashes,
    static_files,
    world,
)

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
WITHOUT_LOGIN = (Role.OWNER, Role.DISPATCH, Role.SCHEMA)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [name for name, path in (("chromium", CHROMIUM), ("chromedriver", DRIVER)) if not path]
    for item in items:
        if "tests/browser" in str(item.path):
            item.add_marker(pytest.mark.browser)
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"{' and '.join(missing)} not installed"))


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.Chrome]:
    """One browser for all tests; each starts without cookies."""
    options = Options()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1000"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    made.set_page_load_timeout(60)
    yield made
    made.quit()


def wrong_logins() -> dict[str, str]:
    """Environment in which every login but read and session is refused."""
    found = {}
    for owner, role in owner_roles():
        if role in WITHOUT_LOGIN:
            at = settings.DATABASES[owner.alias_of(role)]
            name = f"DATABASE_URL_{owner.name.upper()}_{role.upper()}"
            found[name] = f"postgres://nobody:wrong@{at['HOST']}:{at['PORT']}/{at['NAME']}"
    return found


@pytest.fixture
def server(database: None, static_files: None, tmp_path: Path) -> Iterator[str]:  # noqa: F811  (a fixture)
    """The web server of a deployment on the test databases; its address."""
    cache.clear()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    log = tmp_path / "web.log"
    command = [sys.executable, "-m", "granian", "--interface", "asginl", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "config.asgi:application"], cwd=settings.BASE_DIR, stdout=output, stderr=output,
            env={**os.environ, **wrong_logins()},
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while not _answers(port):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.2):
            return True
    except OSError:
        return False


def console(driver: webdriver.Chrome) -> list[Any]:
    """What the console holds since the last look."""
    return list(driver.get_log("browser"))  # type: ignore[no-untyped-call]  # selenium's


class Browser:
    """What a person does: go somewhere, read, click, type."""

    def __init__(self, driver: webdriver.Chrome, base: str) -> None:
        self.driver = driver
        self.base = base

    def go(self, path: str) -> None:
        self.driver.get(self.base + path)

    def log_in(self, password: str = PASSWORD) -> None:
        self.go("/admin/login/")
        self.type("username", NAME)
        self.type("password", password)
        self.click("#login-form [type=submit]")

    def type(self, field: str, text: str) -> None:
        box = self.driver.find_element(By.NAME, field)
        box.clear()
        box.send_keys(text)

    def click(self, selector: str) -> None:
        self._leave_by(self.driver.find_element(By.CSS_SELECTOR, selector))

    def follow(self, text: str) -> None:
        self._leave_by(self.driver.find_element(By.LINK_TEXT, text))

    def _leave_by(self, element: WebElement) -> None:
        page = self.driver.find_element(By.TAG_NAME, "html")
        element.click()
        WebDriverWait(self.driver, 60).until(staleness_of(page))

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.driver.find_elements(By.CSS_SELECTOR, selector)]

    @property
    def heading(self) -> str:
        return self.texts("h1")[0]

    @property
    def text(self) -> str:
        return self.driver.find_element(By.TAG_NAME, "main").text

    def errors(self) -> list[Any]:
        """What the browser's console holds since the last look."""
        return [entry for entry in console(self.driver) if entry["level"] in {"SEVERE", "WARNING"}]


@pytest.fixture
def browser(driver: webdriver.Chrome, server: str, make_operator: Callable[..., None]) -> Browser:  # noqa: F811  (a fixture)
    """A browser without a login, and an operator who may log in."""
    make_operator()
    driver.get(f"{server}/admin/login/")
    driver.delete_all_cookies()
    console(driver)
    return Browser(driver, server)
