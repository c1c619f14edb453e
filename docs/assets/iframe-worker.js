"use strict";
// Browsers start no worker for a page that was opened from disk. Material's search takes one that
// lives in a hidden frame instead, if a script called iframe-worker offers it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.body.appendChild(document.createElement("iframe"));
      this.frame.hidden = true;
      const inside = this.frame.contentWindow;
      inside.document.write(`<body><script>
        postMessage = (data) => parent.postMessage(data, "*");
        importScripts = async (...urls) => {
          for (const src of urls) await new Promise((done) => document.body.appendChild(
            Object.assign(document.createElement("script"), { src, onload: done })));
        };
      </scr` + `ipt><script src="${url}"></scr` + `ipt></body>`);
      inside.document.close();
      this.ready = new Promise((done) => { inside.onload = done; });
      window.addEventListener("message", ({ source, data }) => {
        if (source === inside) this.dispatchEvent(new MessageEvent("message", { data }));
      });
    }

    async postMessage(data) {
      await this.ready;
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) }));
    }

    terminate() { this.frame.remove(); }
  };
}
