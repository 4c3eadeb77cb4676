"""What the application leaves out of Flask is what nothing in the service uses."""

from __future__ import annotations

import inspect

from api.app import unattached_app


def test_no_blueprint_has_hooks_of_its_own_for_they_would_not_run() -> None:
    app = unattached_app()
    hooks = (
        app.before_request_funcs,
        app.after_request_funcs,
        app.teardown_request_funcs,
        app.url_value_preprocessors,
        app.url_default_functions,
        app.error_handler_spec,
    )
    assert [set(of) - {None} for of in hooks] == [set()] * len(hooks)
    assert not app.teardown_appcontext_funcs
    assert not app.teardown_request_funcs


def test_no_view_is_a_coroutine() -> None:
    assert not [name for name, view in unattached_app().view_functions.items() if inspect.iscoroutinefunction(view)]
