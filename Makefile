# make run    install what is missing, run an MPI job of two workers on this machine, list it
# make test   install what is missing, check style, types and layers, run every test
# make audit  known holes in what is pinned, and in the oldest versions allowed; part of make test
# make hashes  deploy/images/*/requirements*.txt from constraints.txt
# make lint   only the checks      make fmt    house format, tables of the guide, texts in the catalogue
# make mutation  break the core in 400 small ways and see that a test notices each; about ten minutes
# make manifests  deploy/oarsman.yaml and what else is made from the chart and the models, anew
# make screenshots  every page of the console, in both languages and themes, into build/screenshots
# make pictures  the pictures of the documents, into docs/pictures: the recorded terminal and the console
# make bench  measure the claims   make clean  remove what the set-up and the tools made in this folder
# make cluster  start the Kubernetes of the tests, leave it running, say what to type next   make cluster-down  remove it
#
# What passed only at a second try is named at the end, and why the first failed is in build/second-tries.
#
# ARGS go to the test runner: make test ARGS='tests/manifest -k quantities'

# One for each of the three clusters, which mostly wait, one for the browser and one for the rest. More would starve what
# others wait for.
PROCESSES = 5
WITH_VENV = PATH="$(CURDIR)/.venv/bin:$$PATH"
# Whoever has forbidden it: without bytecode every command of a test compiles anew what it imports, and so does pytest.
WITH_BYTECODE = PYTHONDONTWRITEBYTECODE=

.PHONY: run test lint audit hashes fmt mutation manifests screenshots pictures bench clean cluster cluster-down

run:
	@scripts/setup run
	@$(WITH_VENV) oarsman run --replace examples/hello/hello.yaml
	@$(WITH_VENV) oarsman list

test: lint audit
	@scripts/setup test
	@$(WITH_VENV) $(WITH_BYTECODE) python -m pytest -n $(PROCESSES) --dist loadscope --no-loadscope-reorder --reruns 1 $(ARGS)

lint:
	@scripts/setup run
	@$(WITH_VENV) ruff check .
	@$(WITH_VENV) ruff format --check .
	@$(WITH_VENV) mypy
	@$(WITH_VENV) lint-imports

audit:
	@scripts/setup run
	@$(WITH_VENV) python scripts/audit.py

hashes:
	@scripts/setup run
	@$(WITH_VENV) python scripts/hashes.py

fmt:
	@scripts/setup run
	@$(WITH_VENV) ruff check --fix .
	@$(WITH_VENV) ruff format .
	@$(WITH_VENV) python scripts/tables.py
	@$(WITH_VENV) python scripts/catalogue.py

mutation:
	@scripts/setup run
	@$(WITH_VENV) python scripts/mutation.py $(ARGS)

manifests:
	@scripts/setup helm
	@$(WITH_VENV) python scripts/manifests.py

screenshots:
	@scripts/setup test
	@$(WITH_VENV) PYTHONPATH=tests python -m tests.browser.screenshots $(ARGS)

pictures:
	@scripts/setup test
	@$(WITH_VENV) PYTHONPATH=.:tests python scripts/pictures.py

bench:
	@scripts/setup bench
	@$(WITH_VENV) python benchmarks/all.py $(ARGS)

cluster:
	@scripts/setup cluster
	@$(WITH_VENV) PYTHONPATH=tests python -m cluster up

cluster-down:
	@$(WITH_VENV) PYTHONPATH=tests python -m cluster down

clean:
	rm -rf .venv .mpi .tools .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
