-- Healthy once every replica is ready; Degraded as soon as the operator reports a failure.
local hs = { status = "Progressing", message = "Waiting for the database to start" }
if obj.status == nil then
  return hs
end
for _, condition in ipairs(obj.status.conditions or {}) do
  if condition.type == "Failed" and condition.status == "True" then
    hs.status = "Degraded"
    hs.message = condition.message
    return hs
  end
end
local ready = obj.status.readyReplicas or 0
if ready < obj.spec.replicas then
  hs.message = ready .. " of " .. obj.spec.replicas .. " replicas are ready"
else
  hs.status = "Healthy"
  hs.message = nil
end
return hs
