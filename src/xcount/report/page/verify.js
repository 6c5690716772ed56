// Verified counts: a button beside each counts its question again, in a worker, without a network.
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const buttons = all("#verified td button");
  const missing = [
    [typeof BigInt === "function", "large integers (BigInt)"],
    [typeof Worker === "function", "workers"],
    [typeof DecompressionStream === "function", "decompression"],
  ].filter(([isThere]) => !isThere).map(([, what]) => what);

  const unpacked = async (id) => {
    const text = document.getElementById(id).textContent;
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  };

  // In the worker, behind the counter: one question in, progress and a result out.
  const answer = () => {
    let next = 0;
    onmessage = ({ data }) => {
      const result = globalThis.xcountVerified(data, {}, (done, total, states) => {
        if (Date.now() < next) return;
        next = Date.now() + 100;
        postMessage({ done, total, states });
      });
      postMessage({ result });
    };
  };

  const grouped = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ",");

  const count = async (button, output) => {
    const started = performance.now();
    const seconds = () => `${((performance.now() - started) / 1000).toFixed(1)} s`;
    const say = (kind, text) => {
      output.className = kind;
      output.textContent = text;
    };
    say("", "starting");
    let url, worker;
    try {
      const [source, question] = await Promise.all(
        [unpacked("verified-counter"), unpacked(button.dataset.question)]);
      url = URL.createObjectURL(new Blob([source, `\n;(${answer})();`], { type: "text/javascript" }));
      worker = new Worker(url);
      const result = await new Promise((resolve, reject) => {
        worker.onerror = (event) => reject(new Error(event.message || "the worker failed"));
        worker.onmessage = ({ data }) => {
          if (data.result) resolve(data.result);
          else say("", `${data.states.toLocaleString("en")} states, ${seconds()}`);
        };
        worker.postMessage(question);
      });
      if (result.status !== "counted") {
        const isDamaged = result.status === "unreadable";
        say(isDamaged ? "fail" : "", `${isDamaged ? "✗ damaged question" : "no answer"}: ${result.message}`);
      } else if (result.count === button.dataset.count) {
        say("pass", `✓ ${grouped(result.count)} again, in ${seconds()}`);
      } else {
        say("fail", `✗ counted ${grouped(result.count)}, the report says ${grouped(button.dataset.count)}`);
      }
    } catch (error) {
      say("fail", `✗ the question or the counter in this file is damaged: ${error.message}`);
    } finally {
      worker?.terminate();
      if (url) URL.revokeObjectURL(url);
    }
  };

  for (const button of buttons) {
    const output = button.nextElementSibling;
    if (missing.length > 0) {
      output.textContent = `this browser lacks ${missing.join(" and ")}; `
        + "open the page in another one, or use xcount verify";
      continue;
    }
    button.hidden = false;
    button.addEventListener("click", async () => {
      button.disabled = true;
      await count(button, output);
      button.disabled = false;
    });
  }
})();
