export default {
  input: "openapi.json",
  output: { importFileExtension: ".js", path: "hey" },
};
