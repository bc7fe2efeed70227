// Loads payhere-js-sdk from the texts of its modules, as a bundler does, and gives what it exports.
(modules) => {
  const loaded = {};
  const load = (name) => {
    const file = [name, `${name}.js`, `${name}/index.js`].find((each) => each in modules);
    if (!(file in loaded)) {
      const module = (loaded[file] = { exports: {} });
      const require = (path) => load(new URL(path, `file:///${file}`).pathname.replace(/^\/|\/$/g, "") || "index.js");
      new Function("module", "exports", "require", modules[file])(module, module.exports, require);
    }
    return loaded[file].exports;
  };
  window.sdk = load("index.js");
};
