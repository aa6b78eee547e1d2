"""One column of the user's table as codes; one kind of feature, or one family, per file."""

# messages name the kinds in this order
# isort: off
from bayescfx.data.feature import Feature, infer
from bayescfx.data.numbers import Integer, Real
from bayescfx.data.levels import Categorical, Ordinal
from bayescfx.data.datetimes import Moment

__all__ = ["Categorical", "Feature", "Integer", "Moment", "Ordinal", "Real", "infer"]
