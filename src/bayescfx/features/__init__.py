"""One column of the user's table as codes; one kind of feature, or one family, per file."""

# messages name the kinds in this order
# isort: off
from bayescfx.features.feature import Feature, infer
from bayescfx.features.numbers import Integer, Real
from bayescfx.features.levels import Categorical, Ordinal
from bayescfx.features.datetimes import Moment

__all__ = ["Categorical", "Feature", "Integer", "Moment", "Ordinal", "Real", "infer"]
