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


def test_a_fixed_route_is_the_one_that_the_library_would_find() -> None:
    app = unattached_app()
    fixed = [
        (method, route.rule)
        for route in app.url_map.iter_rules()
        if not route.arguments
        for method in route.methods or ()
    ]
    assert ("POST", "/api/decide") in fixed
    for method, path in fixed:
        with app.test_request_context(path, method=method) as context:
            found = context.request.url_rule, context.request.view_args
        assert found == app.url_map.bind("").match(path, method, return_rule=True), (method, path)
