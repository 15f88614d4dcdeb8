import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";
import { traps } from "./view.mjs";

const { document } = page();
const { GrowingNodes, isLink, nodesToDom, plainText } = await import("../../nbdurable/notebook/js/nodes.js");
const { blockToDom, callArguments, longText, TEXT_CHARS } = await import("../../nbdurable/notebook/js/pane/blocks.js");

function shown(node) {
  const host = document.createElement("div");
  host.appendChild(node);
  return host;
}

test("nodes become elements of the same tags and texts", () => {
  const host = shown(nodesToDom([["p", { dir: "auto" }, ["so ", ["strong", {}, ["it"]], " is"]]]));
  assert.equal(host.querySelector("p[dir=auto] > strong").textContent, "it");
  assert.equal(host.textContent, "so it is");
});

for (const tag of ["script", "img", "svg", "iframe", "style", "a:b", "__proto__", "form"])
  test(`a tag that is not known is shown as its text: ${tag}`, () => {
    const host = shown(nodesToDom([[tag, { src: "x", onerror: "hit()" }, ["inside"]]]));
    assert.equal(host.children.length, 0);
    assert.equal(host.textContent, "inside");
  });

test("attributes that are not known are left out", () => {
  const given = { onclick: "hit()", style: "color:red", src: "x", id: "a", class: "jp-Cell", dir: "sideways", title: "t" };
  const [made] = shown(nodesToDom([["span", given, ["x"]]])).children;
  assert.deepEqual([...made.attributes].map(({ name }) => name), ["title"]);
});

for (const address of ["javascript:hit()", " JaVaScript:hit()", "data:text/html,x", "vbscript:x", "//host/x", "/x", "x", "file:///x", "java\nscript:hit()"])
  test(`an address that runs or reads is no link: ${JSON.stringify(address)}`, () => {
    assert.equal(isLink(address), false);
    assert.equal(shown(nodesToDom([["a", { href: address }, ["x"]]])).querySelector("[href]"), null);
  });

test("a link opens elsewhere and tells nothing of this page", () => {
  const link = shown(nodesToDom([["a", { href: "https://example.com/?a=1&b=2", rel: "opener", target: "_self" }, ["x"]]])).querySelector("a");
  assert.equal(link.getAttribute("href"), "https://example.com/?a=1&b=2");
  assert.equal(link.getAttribute("rel"), "noopener noreferrer nofollow");
  assert.equal(link.getAttribute("target"), "_blank");
});

test("a code block has a button that copies the code without its language", async () => {
  let copied = "";
  Object.defineProperty(globalThis, "navigator", { configurable: true, value: { clipboard: { async writeText(text) { copied = text; } } } });
  const host = shown(nodesToDom([["pre", { dir: "ltr" }, [["span", { class: "nbd-lang" }, ["python"]], "\n", ["code", {}, ["a = 1\n"]]]]]));
  const button = host.querySelector("button");
  button.click();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(copied, "a = 1\n");
  assert.equal(button.textContent, "Copied");
});

test("nodes nested without end become their text", () => {
  let nodes = ["deep"];
  for (let at = 0; at < 100_000; at++) nodes = [["em", {}, nodes]];
  assert.equal(shown(nodesToDom(nodes)).textContent, "deep");
  assert.equal(plainText(nodes), "deep");
});

const PLACES = {
  text: (text) => ({ type: "text", text }),
  thinking: (text) => ({ type: "thinking", text, tokens: 3 }),
  call: (text) => ({ type: "call", name: text, arguments: text, id: "c", result: { text, is_error: true, seconds: 1, n: 2 } }),
  image: (text) => ({ type: "image", media_type: text, data: text, alt: text }),
  file: (text) => ({ type: "file", name: text, media_type: text, size: 1 }),
  json: (text) => ({ type: "json", text }),
  markdown: (text) => ({ type: "markdown", nodes: [["p", { title: text, class: text, href: text, dir: text }, [text]]] }),
  unknown: (text) => ({ type: text, text }),
};
const OWN_TAGS = new Set(["DIV", "SPAN", "P", "B", "I", "DETAILS", "SUMMARY", "BUTTON"]);

for (const [place, made] of Object.entries(PLACES))
  test(`hostile texts stay texts in a block of kind ${place}`, () => {
    for (const { name, text } of traps()) {
      const host = shown(blockToDom(made(text), () => {}));
      for (const element of host.querySelectorAll("*")) {
        assert.ok(OWN_TAGS.has(element.tagName), `${name} made ${element.tagName}`);
        for (const attribute of element.attributes) assert.ok(!/^(on|src|style)/.test(attribute.name), `${name} made ${attribute.name}`);
      }
    }
  });

test("a picture is shown from stored bytes of a known kind only", () => {
  const picture = shown(blockToDom({ type: "image", media_type: "image/png", data: "aGk=", alt: "a cat" }, () => {})).querySelector("img");
  assert.equal(picture.getAttribute("src"), "data:image/png;base64,aGk=");
  assert.equal(picture.getAttribute("alt"), "a cat");
  for (const [media_type, data] of [["image/svg+xml", "aGk="], ["text/html", "aGk="], ["image/png", "https://host/x"]])
    assert.equal(shown(blockToDom({ type: "image", media_type, data, alt: "" }, () => {})).querySelector("img"), null);
});

test("a call stands with its result, and leads to its entry", () => {
  const gone = [];
  const block = { type: "call", name: "look", arguments: '{"order": 1234, "full": true}', id: "c", result: { text: "found", is_error: false, seconds: 0.2, n: 8 } };
  const host = shown(blockToDom(block, (n) => gone.push(n)));
  assert.equal(host.querySelector(".nbd-call").textContent, "look(order=1234, full=true)");
  assert.match(host.querySelector(".nbd-result").textContent, /0\.2 s#8found/);
  host.querySelector("button").click();
  assert.deepEqual(gone, [8]);
});

for (const text of ['{"id": 12345678901234567890}', '{"x": 1.0}', '{"x": 1e5}', '{"half": ', "[1]", "3"])
  test(`arguments that would read otherwise are shown as they are: ${text}`, () => {
    assert.equal(callArguments(text), text);
  });

test("a very long text is cut with a count, and shown whole when asked for", () => {
  const text = "x".repeat(TEXT_CHARS + 1_234);
  const host = shown(longText(text));
  const button = host.querySelector("button");
  assert.equal(button.textContent, "… 1,234 characters more, show all");
  button.click();
  assert.equal(host.textContent, text);
});

test("a cut never falls into a character of two units", () => {
  const host = shown(longText("x".repeat(TEXT_CHARS - 1) + "🎈".repeat(9)));
  assert.equal(host.firstChild.firstChild.data, "x".repeat(TEXT_CHARS - 1));
});

test("what is finished of a list that grows stays untouched in the page", () => {
  const grown = new GrowingNodes(document.createElement("div")), one = ["li", {}, ["one"]];
  grown.show([["ul", {}, [one, ["li", {}, ["tw"]]]]]);
  const [list] = grown.root.children, [first] = list.children;

  grown.show([["ul", {}, [one, ["li", {}, ["two"]], ["li", {}, ["three"]]]], ["p", {}, ["after"]]]);
  const texts = [...list.children].map((item) => item.textContent);
  grown.show([["ol", {}, [one]]]);

  assert.deepEqual(texts, ["one", "two", "three"]);
  assert.equal(list.firstChild, first);
  assert.equal(grown.root.innerHTML, "<ol><li>one</li></ol>");
});
