// A page from a disk may not start a worker: the search's script then runs in a hidden frame with the same messages.
class IFrameWorker extends EventTarget {
  constructor(url) {
    super()
    const frame = document.createElement("iframe")
    frame.hidden = true
    document.body.appendChild(frame)
    const inside = frame.contentWindow
    addEventListener("message", event => {
      if (event.source !== inside) return
      const copy = new MessageEvent("message", { data: event.data })
      this.dispatchEvent(copy)
      if (this.onmessage) this.onmessage(copy)
    })
    this.ready = new Promise(resolve => { frame.onload = resolve })
    this.inside = inside
    inside.document.open()
    inside.document.write(`<script>var postMessage = data => parent.postMessage(data, "*")</script><script src="${url}"></script>`)
    inside.document.close()
  }

  postMessage(data) {
    this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
  }
}

if (location.protocol === "file:") window.Worker = window.IFrameWorker = IFrameWorker
