"""What a release consists of, and whether it installs and works: `make dist` and `make release-check`.

packages    the installed packages that the product runs on, and what the lock says of each
licenses    the license of a package, and whether a release may depend on it
bill        the software bill of materials, in CycloneDX
dist        builds the wheel, the source distribution and the bill, and checks all three
installs    installs what was built for each Python of the machine, and uses it as a user would
"""
