// A browser starts no worker from a page that it opened as a file. The search needs one: where the
// site is opened from a folder, a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      const inside = frame.contentWindow
      this.ready = new Promise((resolve) => {
        // What the worker says to its page, and how it loads more code.
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
        inside.importScripts = async (...urls) => {
          for (const each of urls) await load(inside, new URL(each, url).href)
        }
        load(inside, url).then(resolve)
      })
      this.inside = inside
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }

  function load(inside, url) {
    return new Promise((resolve) => {
      const script = inside.document.createElement("script")
      script.src = url
      script.onload = resolve
      inside.document.body.appendChild(script)
    })
  }
}
