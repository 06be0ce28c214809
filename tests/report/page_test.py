"""Loads the pages of report_model in a browser: no console error, a complete drawing, and no execution of model content."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import browser

DIGITS = pathlib.Path("tests/models/digits/digits.pb")
HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=document.title='taken'>"


def node(name, op, inputs=(), attributes=""):
    quoted = name.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'")
    lines = "".join(f' input: "{each}"' for each in inputs)
    return f'node {{ name: "{quoted}" op: "{op}"{lines} {attributes} }}\n'


FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
SHAPE = 'attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 4 } } } }'


def constant(name, values):
    numbers = "".join(f" float_val: {value}" for value in values)
    return node(name, "Const", (), 'attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { '
                f"dtype: DT_FLOAT tensor_shape {{ dim {{ size: {len(values)} }} }}{numbers} }} }} }}")


class PageTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.chromium = browser.find()
        if cls.chromium is None:
            raise unittest.SkipTest("there is no Chromium: apt-get install chromium, or set $CHROMIUM")
        cls.folder = tempfile.TemporaryDirectory()
        cls.work = pathlib.Path(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def report(self, *flags):
        page = self.work / f"{self._testMethodName}.html"
        subprocess.run(["tools/report_model", f"--out={page}", "--max_time=0.2", "--threads=1", *flags], check=True,
                       capture_output=True)
        return page

    def check(self, page):
        self.assertEqual(page.console, [])
        self.assertIsNone(page.data("error"))
        self.assertIsNotNone(page.data("rendered"), "the script did not come to its end")
        print(f"{self._testMethodName}: drawn in {page.data('rendered')} ms", file=sys.stderr)

    def test_one_model(self):
        path = self.report(f"--in_graph={DIGITS}")
        for scheme in ("light", "dark"):
            page = browser.load(self.chromium, path, scheme)
            self.check(page)
            for part in ("summary", "time_by_type", "time_by_node", "size_by_layer", "size_by_type", "ops", "memory",
                         "weights", "graph", "nodes"):
                self.assertIn(f'<section id="{part}">', page.document)
            self.assertIn("<canvas", page.document)

    def test_variants_side_by_side(self):
        small = self.work / "small.pb"
        subprocess.run(["tools/transform_graph", f"--in_graph={DIGITS}", f"--out_graph={small}",
                        "--transforms=quantize_weights(bits=4)", "--verify=off"], check=True, capture_output=True)
        page = browser.load(self.chromium, self.report(
            f"--in_graph={DIGITS},{small}", "--names=before,after", "--inputs=tests/models/digits/eval_images.npy",
            "--labels=tests/models/digits/eval_labels.npy"))
        self.check(page)
        for part in ("quality", "errors"):
            self.assertIn(f'<section id="{part}">', page.document)
        self.assertEqual(page.document.count("<canvas"), 2)
        self.assertRegex(page.document, '<p class="conclusion">[^<]*; the accuracy of (before|after) is ')

    def test_accuracy_of_one_model(self):
        page = browser.load(self.chromium, self.report(
            f"--in_graph={DIGITS}", "--inputs=tests/models/digits/eval_images.npy",
            "--labels=tests/models/digits/eval_labels.npy"))
        self.check(page)
        self.assertIn('<section id="quality">', page.document)

    def test_common_prefix_of_names(self):
        model = self.work / "prefix.pbtxt"
        model.write_text(node("x", "Placeholder", (), SHAPE) + node("net/block/a", "Relu", ("x",), FLOAT) +
                         node("net/block/b", "Relu", ("net/block/a",), FLOAT))
        page = browser.load(self.chromium, self.report(f"--in_graph={model}", "--run=false"))
        self.check(page)
        self.assertRegex(page.document, 'Names are shown without <span class="name">net/block/</span>')
        self.assertIn('<span class="name">b</span>', page.document)

    def test_hostile_names(self):
        model = self.work / "hostile.pbtxt"
        # A weight that is not finite, a loop that Chromium would have to draw, and markup wherever a name may be.
        model.write_text(node("x", "Placeholder", (), SHAPE) + constant("w", ["nan", "inf", "-inf", "1"] * 4) +
                         node(HOSTILE, "Relu", ("x",), FLOAT) + node("<b>", "<i>Unknown</i>", ("w",)) +
                         node("y", "Add", ("x", HOSTILE.replace("'", "\\'")), FLOAT))
        path = self.report(f"--in_graph={model}", "--output_layer=y", f"--title={HOSTILE}", "--names=<u>name</u>")
        page = browser.load(self.chromium, path)
        self.check(page)
        self.assertNotIn("<title>taken", page.document)
        self.assertNotIn("<img", page.document)
        self.assertNotIn("<i>Unknown", page.document)
        self.assertNotIn("<u>name", page.document)
        self.assertIn("&lt;i&gt;Unknown", page.document)

    def test_prints(self):
        to = self.work / "report.pdf"
        browser.printed(self.chromium, self.report(f"--in_graph={DIGITS}"), to)
        self.assertTrue(to.read_bytes().startswith(b"%PDF"))

    def test_without_running(self):
        page = browser.load(self.chromium, self.report(f"--in_graph={DIGITS}", "--run=false"))
        self.check(page)
        self.assertNotIn('<section id="memory">', page.document)


if __name__ == "__main__":
    unittest.main()
