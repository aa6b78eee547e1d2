// Types of the page: the server's JSON, and the state that the parts of the page share.

/** A value of a feature, as JSON has it; a point in time is a text. */
export type Cell = string | number | boolean | null;
export type Cells = Record<string, Cell>;

/** The ends of an interval; null means unbounded. */
export type Interval = [number | null, number | null];

export interface Histogram {
  edges: number[];
  counts: number[];
}

export interface Feature {
  name: string;
  kind: string;
  description: string;
  levels: Cell[] | null;
  ordered: boolean;
  cyclic: boolean;
  low: Cell;
  high: Cell;
  step: number | null;
  histogram: { edges?: Cell[]; counts: number[] };
  unit: number;
  fixed: boolean;
  derived: boolean;
  missing: boolean;
}

/** The settings of a search. */
export interface Settings {
  budget: number | null;
  timeout: number;
  seed: number;
  n: number;
  diverse: boolean;
  tolerance: number;
  method: string;
}

/** A verb of the constraints, described as data. */
export interface Verb {
  name: string;
  help: string;
  kind: string;
  example: string;
  takes_text: boolean;
  is_repeatable: boolean;
  schema: object;
}

/** The model and its data, from `/api/site`. */
export interface Site {
  title: string;
  version: string;
  output: { name: string; unit: string };
  n_rows: number;
  n_listed: number;
  id: string | null;
  store: boolean;
  local: boolean;
  shares_evaluations: boolean;
  classifier: string | null;
  defaults: Settings;
  maximum: { budget: number; timeout: number; n: number };
  methods: string[];
  predictions: Histogram;
  rules: string[];
  /** The price of a changed feature, unless the visitor sets another. */
  per_change: number;
  verbs: Verb[];
  features: Feature[];
}

/** A row of the data, with the model's prediction. */
export interface DataRow {
  label: string;
  cells: Cells;
  output: number | null;
}

export interface DataPage {
  total: number;
  rows: DataRow[];
}

/** A prediction of `/api/predict`. */
export interface Prediction {
  output: number;
  broken: string[];
  /** Derived features that changed, in words. */
  follows: string[];
  miss: number | null;
  reached: boolean | null;
  cost: number | null;
  distance: number | null;
  n_changes: number;
}

/** The meaning of a target's text, from `/api/target`. */
export interface TargetMeaning {
  text: string;
  met: boolean;
  wanted: Interval[];
  accepted: Interval[];
}

/** The response curve of one feature, from `/api/curve`. */
export interface Curve {
  feature: string;
  at: number | null;
  values: Cell[];
  texts: string[];
  x: number[];
  numeric: boolean;
  model: (number | null)[] | null;
  n_rows: number;
  mean: number[] | null;
  low: number[] | null;
  high: number[] | null;
  seen: [number, number][];
}

export interface Change {
  name: string;
  before: Cell;
  after: Cell;
  before_text: string;
  after_text: string;
  start: number | null;
  end: number | null;
  allowed: [number, number] | null;
  levels: number[] | null;
  wraps: boolean;
  ordered: boolean;
  derived: boolean;
  effect: number | null;
  effect_text: string | null;
}

export interface Counterfactual {
  cells: Cells;
  output: number;
  output_text: string;
  valid: boolean;
  potential: number;
  plausibility: number | null;
  n_changes: number;
  cost: number;
  distance: number;
  proof: string | null;
  sentence: string;
  changes: Change[];
  /** Values that stay outside their limits, in words; empty if there are none. */
  kept_text: string;
  /** Where the answer stays valid, in words; empty if it is not known. */
  valid_text: string;
}

/** Which sets of features can reach a target: features, cost, changes; and what is left to say. */
export interface Menu {
  lines: [string, string, string][];
  notes: string[];
}

/** A binding constraint, and how it is known; `relax` is the visitor's space without it. */
export interface Binding {
  text: string;
  relax: Space | null;
  action: string | null;
}

export interface Answer {
  status: string;
  verdict: string;
  sentence: string;
  output: number;
  n_evaluations: number;
  method: string;
  seed: number | null;
  stopped: string;
  proof: string | null;
  bound: number | null;
  proof_reason: string;
  wanted: Interval[];
  accepted: Interval[];
  reachable: [number, number] | null;
  binding: Binding[];
  query: Cells;
  counterfactuals: Counterfactual[];
}

/**
 * A step of a search: rows scored, potential, best output, whether it is reached, its cost, and
 * while a proof runs the cost below which there is no answer.
 */
export type Step = [number, number, number, boolean, number, number | null];

/** A question as it is sent to the server. */
export interface QuestionRequest extends Settings {
  cells: Cells | null;
  label: string | null;
  target: string;
  space: Space;
}

/** A question as the server returns it; in lists without `steps` and `answer`. */
export interface Question {
  id: number;
  state: "waiting" | "running" | "done" | "failed";
  place: number;
  request: QuestionRequest;
  label: string;
  title: string;
  status: string | null;
  spent: number;
  seconds: number;
  reachable: [number, number] | null;
  error: string | null;
  notes: string[];
  bookmarks: number[];
  steps?: Step[];
  answer?: Answer | null;
}

/** An event of a running search. */
export interface Progress {
  step: Step;
  spent: number;
  seconds: number;
  reachable: [number, number] | null;
}

/** The visitor's constraints by verb, as in a settings file. */
export type Space = Record<string, unknown>;

/** The settings of a feature's card. */
export interface Card {
  locked: boolean;
  direction: "" | "up" | "down";
  low: Cell;
  high: Cell;
  levels: number[] | null;
  /** Whether the limits bind the present value, too. */
  strict: boolean;
  difficulty: number;
  step: number | null;
  move: [number | null, number | null] | null;
}

/** The constraints that concern several features. */
export interface Limits {
  require: string[];
  together: string[][];
  maxChanges: number | null;
  nearData: boolean;
  /** The cost, but for the factors of features, which the cards have. */
  cost: Space;
  other: Space; // values of verbs without a control of their own
}

export interface BaseRow {
  label: string | null;
  cells: Cells;
}

export interface RowState extends BaseRow {
  base: BaseRow | null;
  output: number | null;
  error: string | null;
}

export interface TargetState {
  text: string;
  wanted: Interval[] | null;
  accepted: Interval[] | null;
  meaning: string;
  met: boolean | null;
  error: string | null;
}

export interface Compared {
  id: number;
  index: number;
}

export interface PageState {
  site: Site;
  row: RowState;
  target: TargetState;
  cards: Map<string, Card>;
  limits: Limits;
  settings: Settings;
  question: Question | null;
  isSending: boolean;
  sentDraft: string | null;
  compare: Compared[];
  whatif: { cells: Cells; from: "row" | number };
  tab: string;
}

/** The axis of a feature: its ends, the step of handles, and the origin of the steps. */
export interface Axis {
  low: number;
  high: number;
  step: number;
  origin: number;
}

/** Attributes, properties and `on…` listeners of an element. */
export type Props = {
  [listener: `on${string}`]: ((event: never) => unknown) | undefined;
  [attribute: string]: unknown;
};

export type Child = Node | string | number | boolean | null | undefined | readonly Child[];

/** The colours of the page by name. */
export type Colours = Record<string, string>;

export interface Figure {
  data: object[];
  layout: Record<string, unknown>;
}

/** The parts of Plotly that the page uses. */
export interface PlotlyLibrary {
  react(node: HTMLElement, data: object[], layout: object, config: object): Promise<unknown>;
  purge(node: HTMLElement): void;
}

declare global {
  interface Window {
    Plotly?: PlotlyLibrary;
  }
}
