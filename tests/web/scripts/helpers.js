// Features and a site as the server describes them.

/** Return a feature with the given differences from a real number between 0 and 100. */
export const feature = (change = {}) => ({
  name: "bmi",
  kind: "real",
  description: "",
  levels: null,
  ordered: true,
  cyclic: false,
  low: 0,
  high: 100,
  step: null,
  histogram: { edges: [0, 50, 100], counts: [3, 1] },
  unit: 1,
  fixed: false,
  derived: false,
  missing: false,
  ...change,
});

export const integer = feature({ name: "age", kind: "integer", low: 18, high: 80, step: 1 });
export const moment = feature({
  name: "built",
  kind: "moment",
  low: "2020-01-01",
  high: "2020-12-31",
});
export const smoker = feature({
  name: "smoker",
  kind: "categorical",
  levels: ["no", "yes", true, 1],
  ordered: false,
  low: null,
  high: null,
  histogram: { counts: [2, 1, 0, 0] },
});
export const fixed = feature({ name: "sex", fixed: true });

/** Return a site with some features of each kind. */
export const site = (change = {}) => ({
  title: "Test",
  version: "0",
  output: { name: "price", unit: "" },
  features: [feature(), integer, smoker, fixed],
  defaults: {
    budget: 2000,
    timeout: 60,
    seed: 0,
    n: 3,
    diverse: false,
    tolerance: 0.05,
    method: "auto",
  },
  maximum: { budget: 20000, timeout: 600, n: 10 },
  methods: ["auto", "sweep"],
  per_change: 0.2,
  verbs: [
    { name: "fix", help: "never change", takes_text: true },
    { name: "one_group", help: "changes stay in one group", takes_text: true },
  ],
  predictions: { edges: [0, 10, 20, 30, 40], counts: [1, 1, 1, 1] },
  ...change,
});
