"""Which entries keep the untuned choice after they have lost on held-out trees."""

import unittest

import held_out


def entry(name, keeps_default=False, signature="a"):
    return {"signature": signature, "class": name, "config": {"partition": "auto" if keeps_default else "node"},
            "measurement": {"tuned_us": 9, "untuned_us": 10}, "provenance": {"note": "tuned"},
            **({"keeps_default": True} if keeps_default else {})}


def row(name, us, untuned_us=10, signature="a", is_like=True):
    return {"signature": signature, "class": name, "tree": 0, "us": us, "untuned_us": untuned_us, "stale": False,
            "tuned_on": [[11.05, 5, 3, 1, 0]], "is_like_tuned_on": is_like}


class DemoteTest(unittest.TestCase):
    def test_what_loses_on_a_tree_like_those_it_was_tuned_on_keeps_the_untuned_choice(self):
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
        changed = held_out.demote(configs, [row("lost", 11, is_like=False), row("lost", 9)], 0.02)
        self.assertEqual(changed, ([("a", "lost")], []))
        lost = configs["entries"][0]
        self.assertEqual(lost["only_for"], [[11.05, 5, 3, 1, 0]])
        self.assertEqual(lost["config"], {"partition": "node"})
        self.assertNotIn("keeps_default", lost)

    def test_what_is_for_some_trees_already_has_lost_on_these(self):
        configs = {"entries": [entry("lost") | {"only_for": [[1, 2, 3, 4, 0]]}, entry("kept", keeps_default=True)]}
        changed = held_out.demote(configs, [row("lost", 11, is_like=False)], 0.02)
        self.assertEqual(changed, ([], [("a", "lost")]))
        self.assertNotIn("only_for", configs["entries"][0])

    def test_another_attentions_loss_is_not_ones_own(self):
        configs = {"entries": [entry("lost"), entry("kept", keeps_default=True)]}
        self.assertEqual(held_out.demote(configs, [row("lost", 11, signature="b")], 0.02), ([], []))
        self.assertNotIn("keeps_default", configs["entries"][0])


if __name__ == "__main__":
    unittest.main()
