local os = require("os")
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["example.com/restarted-at"] = os.date("!%Y-%m-%dT%XZ")
return obj
