"""The explainer of a request: model, space, file of evaluations and search settings."""

from __future__ import annotations

import bayescfx as cfx
from bayescfx.errors import SettingsError
from bayescfx.requests.console import Console
from bayescfx.requests.settings import Settings
from bayescfx.requests.subject import Subject, identify_model


def make_explainer(subject: Subject, settings: Settings, console: Console) -> cfx.Explainer:
    """Return the explainer of a subject, to be closed; the file of evaluations is opened."""
    if settings.evaluations is None:
        _check_file(settings)
    explainer = cfx.Explainer(
        identify_model(subject, settings, console),
        subject.space,
        settings.evaluations,
        method=settings.method,
        budget=settings.budget,
        n=settings.n,
        diverse=bool(settings.diverse),
        tolerance=settings.tolerance,
        short_decimals=not settings.all_digits,
        timeout=settings.timeout,
        on_fault=settings.on_fault,
        rng=settings.seed,
        run=settings.run or None,
        n_jobs=settings.jobs,
        prove=_as_prove(settings.prove),
        menu=bool(settings.menu),
    )
    try:
        if settings.evaluations is not None:
            _prepare_file(explainer, settings, console)
    except BaseException:
        explainer.close()
        raise
    return explainer


def _as_prove(seconds: float | None) -> bool | float:
    """Return the setting `prove`: on by default, off with 0 seconds."""
    if seconds is None:
        return True
    return seconds if seconds > 0 else False


def _check_file(settings: Settings) -> None:
    """Raise if an option needs a file of evaluations."""
    needs: dict[str, object] = {"--forget must have a file to empty": settings.forget}
    needs["--run must have a file to be kept in"] = settings.run
    for need, is_given in needs.items():
        if is_given:
            raise SettingsError(f"{need}; got none. Add --evaluations FILE.")


def _prepare_file(explainer: cfx.Explainer, settings: Settings, console: Console) -> None:
    """Remove the model's rows if this is asked for; note a file with other models only."""
    assert explainer.evaluations is not None  # there is a file
    own = explainer.evaluations.claim(None, explainer.model.identity())
    if settings.forget:
        own.forget()
    if own.file is not None and not len(own):
        _note_others(len(own.file.sections()), settings, console)


def _note_others(n_others: int, settings: Settings, console: Console) -> None:
    """Note that a file holds rows of other models only."""
    if n_others:
        console.note(f"{settings.evaluations} holds rows of other models ({n_others}): not used.")
