"""Which entries keep the untuned choice after they have lost on held-out trees."""

import unittest

import held_out


def entry(name, keeps_default=False, signature="a"):
    return {"signature": signature, "class": name, "config": {"partition": "auto" if keeps_default else "node"},
            "measurement": {"tuned_us": 9, "untuned_us": 10}, "provenance": {"note": "tuned"},
            **({"keeps_default": True} if keeps_default else {})}


def row(name, us, untuned_us=10, signature="a", tokens=11.05):
    return {"signature": signature, "class": name, "tree": 0, "us": us, "untuned_us": untuned_us, "stale": False,
            "at": [tokens, 5, 3, 1, 0], "tuned_on": [[11.05, 5, 3, 1, 0]]}


class DemoteTest(unittest.TestCase):
    def test_what_loses_next_to_the_trees_it_was_tuned_on_keeps_the_untuned_choice(self):
        configs = {"entries": [entry("lost"), entry("noise"), entry("won"), entry("kept", keeps_default=True)]}
        changed = held_out.demote(configs, [row("lost", 9), row("lost", 11), row("noise", 10.1), row("won", 8),
                                            row("kept", 11)], 0.02)
        self.assertEqual(changed, ([], [("a", "lost")]))
        lost, *others = configs["entries"]
        self.assertTrue(lost["keeps_default"])
        self.assertNotIn("only_for", lost)
        self.assertEqual(lost["config"], {"partition": "auto"})
        self.assertEqual(lost["measurement"], {"tuned_us": 10, "untuned_us": 10})
        self.assertIn("held out", lost["provenance"]["note"])
        self.assertEqual([other["provenance"]["note"] for other in others], ["tuned"] * 3)

    def test_what_loses_far_from_them_is_for_them_alone(self):
        configs = {"entries": [entry("lost"), entry("kept", keeps_default=True)]}
        changed = held_out.demote(configs, [row("lost", 11, tokens=11.35), row("lost", 9)], 0.02)
        self.assertEqual(changed, ([("a", "lost")], []))
        lost = configs["entries"][0]
        self.assertEqual(lost["only_for"], [[11.05, 5, 3, 1, 0]])
        self.assertNotIn("within", lost)
        self.assertEqual(lost["config"], {"partition": "node"})
        self.assertNotIn("keeps_default", lost)

    def test_what_loses_near_them_is_for_what_is_nearer_alone(self):
        configs = {"entries": [entry("lost"), entry("kept", keeps_default=True)]}
        self.assertEqual(held_out.demote(configs, [row("lost", 11, tokens=11.13)], 0.02), ([("a", "lost")], []))
        self.assertEqual(configs["entries"][0]["within"], 0.04)
        self.assertEqual(held_out.demote(configs, [row("lost", 11, tokens=10.99)], 0.02), ([("a", "lost")], []))
        self.assertEqual(configs["entries"][0]["within"], 0.03)
        self.assertEqual(held_out.demote(configs, [row("lost", 11, tokens=11.09)], 0.02), ([], [("a", "lost")]))
        self.assertNotIn("only_for", configs["entries"][0])
        self.assertNotIn("within", configs["entries"][0])

    def test_half_way_is_rounded_down_as_the_tuner_does(self):
        for tokens, within in ((11.10, 0.025), (11.131, 0.04)):
            configs = {"entries": [entry("lost"), entry("kept", keeps_default=True)]}
            held_out.demote(configs, [row("lost", 11, tokens=tokens)], 0.02)
            self.assertEqual(configs["entries"][0]["within"], within)

    def test_another_attentions_loss_is_not_ones_own(self):
        configs = {"entries": [entry("lost"), entry("kept", keeps_default=True)]}
        self.assertEqual(held_out.demote(configs, [row("lost", 11, signature="b")], 0.02), ([], []))
        self.assertNotIn("keeps_default", configs["entries"][0])


if __name__ == "__main__":
    unittest.main()
