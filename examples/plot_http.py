"""
A model behind HTTP
===================

A chemist sends measurements of wine to a service, which says how likely it is
that the grapes are of the cultivar on the label. A sample failed, and its grower
objects. Before she repeats thirteen measurements, the chemist wants to know:
which of them would have to be wrong, and by how much, for the service to say
otherwise? She has an address and no model, and the service counts rows.
"""

# %%
# The service
# -----------
# So that this page runs anywhere, we start the service ourselves, on this
# machine, with nothing but the standard library. It speaks the scoring protocol
# of MLflow, and when it is asked for the third time it is busy.

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, cultivar = load_wine(return_X_y=True, as_frame=True)
inner = make_pipeline(StandardScaler(), LogisticRegression(C=0.3)).fit(
    X, cultivar == 0
)
log = {"requests": 0, "busy": 0, "rows": 0}


class Service(BaseHTTPRequestHandler):
    """Answer ``POST /invocations``."""

    def do_POST(self):
        log["requests"] += 1
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        if log["requests"] == 3:
            log["busy"] += 1
            return self.reply(503, {"error": "busy"})
        table = json.loads(sent)["dataframe_split"]
        rows = pd.DataFrame(table["data"], columns=table["columns"])
        log["rows"] += len(rows)
        self.reply(200, {"predictions": inner.predict_proba(rows)[:, 1].tolist()})

    def reply(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words):
        """Say nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}"

# %%
# The question
# ------------
# The service is a model like any other, a function of rows; ``probability`` says
# what its numbers are. When the server is busy it is asked again. Rows cost money,
# so 60 are the limit, and requests take time, so four rows go with each.

import bayescfx as cfx

endpoint = cfx.Endpoint(address, patience=cfx.Patience(timeout=5, retries=3))
service = cfx.probability(endpoint)
sample = X[cultivar == 1].iloc[3]
print(f"cultivar as on the label: {service(sample.to_frame().T)[0]:.3f}")

space = cfx.Space.from_data(X)
answer = cfx.explain(
    service,
    sample,
    space.max_changes(2),
    cfx.at_least(0.5),
    method=cfx.BayesCFX(batch=4),
    n=3,
    budget=60,
    rng=0,
)
print(answer)
print(log)

# %%
# The service counts one row more than the answer: the one that we sent by hand.
# Each answer is a set of measurements that would have to be wrong together, and
# the picture shows by how much.

from bayescfx import plots

plots.change_chart(answer)

# %%
# One measurement instead of thirteen
# -----------------------------------
# She repeats the first, and gets 655 instead of 630.

print(cfx.what_if(service, sample, {"proline": 655}, space, cfx.at_least(0.5)))
server.shutdown()
server.server_close()
