"""Records OpenSpiel's best responses in Kuhn poker; needs `pip install open_spiel`. Redirect the output to best_responses.csv.

One row per second player (xi, eta): the value of the first player's best response, and its actions at the six information
states (1 = bet or call): J, Q, K acting first, then J, Q, K facing a bet.
"""

import pyspiel
from open_spiel.python import policy
from open_spiel.python.algorithms import best_response

GAME = pyspiel.load_game("kuhn_poker")


def second_player(xi, eta):
    table = policy.TabularPolicy(GAME)
    bets = {"0p": xi, "1p": 0.0, "2p": 1.0, "0b": 0.0, "1b": eta, "2b": 1.0}
    for state, bet in bets.items():
        table.policy_for_key(state)[:] = [1.0 - bet, bet]
    return table


def row(xi, eta):
    answer = best_response.BestResponsePolicy(GAME, 0, second_player(xi, eta))
    value = float(answer.value(GAME.new_initial_state()))
    moves = [answer.best_response_action(key) for key in ["0", "1", "2", "0pb", "1pb", "2pb"]]
    return [xi, eta, value, *moves]


STEPS = [step / 40 for step in range(0, 41, 4)] + [0.017, 0.32, 0.34, 0.983]
print("xi,eta,value,first_j,first_q,first_k,facing_j,facing_q,facing_k")
for xi in STEPS:
    for eta in STEPS:
        print(",".join(repr(cell) for cell in row(xi, eta)))
