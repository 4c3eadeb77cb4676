#!/bin/sh
# Finds a Chromium for the tests that look at pages; where there is none, installs Debian's or Ubuntu's, if it may.
# Where there is none after all, those tests are skipped, and say so; GATE_REQUIRE_BROWSER=1, as in continuous integration,
# makes that a failure. GATE_BROWSER names a browser in another place. One that has no windows to draw starts and draws pages
# with less work, and so comes first.
for name in ${GATE_BROWSER:-chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable}; do
  if command -v "$name" > /dev/null && "$name" --version > /dev/null 2>&1; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  echo "Installing Chromium for the browser tests (apt-get)."
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq > /dev/null 2>&1
  for package in chromium-headless-shell chromium; do
    if apt-get install -y -qq --no-install-recommends "$package" > /dev/null 2>&1; then exit 0; fi
  done
  echo "apt-get could not install it."
fi
how="Install chromium or google-chrome (Debian: apt-get install chromium)."
if [ -n "${GATE_REQUIRE_BROWSER:-}" ]; then
  echo "No Chromium, and GATE_REQUIRE_BROWSER is set: the browser tests cannot run. $how"
  exit 1
fi
echo "No Chromium: the browser tests are skipped. $how"
