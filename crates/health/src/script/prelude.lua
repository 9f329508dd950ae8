-- Functions that are written in Lua so that the limits of a script hold inside them, and those of Lua 5.1.
local globals, base, library, whole, clock, texts = ...
local error, next, rawget, rawset, select, type = error, next, rawget, rawset, select, type

globals._G = globals
globals._VERSION = "Lua 5.1"
globals.unpack = library.unpack
globals.print = function() end
globals.tostring = function(value)
  return type(value) == "number" and whole(value) or base.tostring(value)
end
globals.collectgarbage = function() return 0 end

-- Lua calls a handler of errors where the error is raised. For the error that stops a script this is inside the hook,
-- where no limit reaches it; here it is called after the error.
local function handled(handler, good, ...)
  if good then
    return true, ...
  end
  return false, handler(...)
end

globals.xpcall = function(call, handler, ...)
  return handled(handler, base.pcall(call, ...))
end

-- A finalizer would run where no limit reaches it, so there are none.
globals.setmetatable = function(value, metatable)
  local finalizer = type(metatable) == "table" and rawget(metatable, "__gc") or nil
  if finalizer ~= nil then
    rawset(metatable, "__gc", nil)
  end
  local good, result = base.pcall(base.setmetatable, value, metatable)
  if finalizer ~= nil then
    rawset(metatable, "__gc", finalizer)
  end
  if not good then
    error(result, 2)
  end
  return result
end

local loaded, preload = { _G = globals }, {}
globals.package = { loaded = loaded, preload = preload }
globals.require = function(name)
  local module = loaded[name]
  if module ~= nil then
    return module
  end
  local loader = preload[name]
  if type(loader) ~= "function" then
    error("module '" .. base.tostring(name) .. "' not found", 2)
  end
  module = loader(name)
  if module == nil then
    module = true
  end
  loaded[name] = module
  return module
end

local tables = { concat = library.concat, insert = library.insert, remove = library.remove }
globals.table = tables
loaded.table = tables

local function must_be_table(value, name)
  if type(value) ~= "table" then
    error("bad argument #1 to '" .. name .. "' (table expected, got " .. type(value) .. ")", 3)
  end
end

tables.getn = function(list)
  must_be_table(list, "getn")
  return #list
end

tables.maxn = function(list)
  must_be_table(list, "maxn")
  local most = 0
  for key in next, list do
    if type(key) == "number" and key > most then
      most = key
    end
  end
  return most
end

-- Merges sorted runs of growing length: never more than n log n comparisons, whatever they answer.
tables.sort = function(list, before)
  must_be_table(list, "sort")
  before = before or function(a, b)
    return a < b
  end
  local length = #list
  local from, to = {}, {}
  for i = 1, length do
    from[i] = list[i]
  end
  local width = 1
  while width < length do
    for start = 1, length, 2 * width do
      local left, right = start, start + width
      local middle, stop = right, start + 2 * width
      if middle > length + 1 then middle = length + 1 end
      if stop > length + 1 then stop = length + 1 end
      for place = start, stop - 1 do
        if left < middle and (right >= stop or not before(from[right], from[left])) then
          to[place] = from[left]
          left = left + 1
        else
          to[place] = from[right]
          right = right + 1
        end
      end
    end
    from, to = to, from
    width = 2 * width
  end
  for i = 1, length do
    list[i] = from[i]
  end
end

-- The functions of the clock and of texts say `true` and their results, or `false` and what is wrong.
local function answer(good, ...)
  if not good then
    error((...), 2)
  end
  return ...
end

loaded.os = {}
for name, call in next, clock do
  loaded.os[name] = function(a, b)
    return answer(call(a, b))
  end
end

if texts then
  local strings = {}
  -- Every argument that reaches the other side is held there, so a script must not pass a million of them.
  for name, call in next, texts do
    if name == "char" or name == "format" then
      strings[name] = function(...)
        if select("#", ...) > 5000 then
          error("too many arguments", 2)
        end
        return answer(call(...))
      end
    else
      strings[name] = function(a, b, c, d)
        return answer(call(a, b, c, d))
      end
    end
  end
  strings.gmatch = function(text, pattern)
    local place = 1
    return function()
      local function step(following, ...)
        if following then
          place = following
          return ...
        end
        place = nil
      end
      if place then
        return step(answer(texts.step(text, pattern, place)))
      end
    end
  end
  strings.step = nil
  strings.pieces = nil
  strings.gfind = strings.gmatch

  strings.gsub = function(text, pattern, replacement, most)
    local kind = type(replacement)
    if kind == "string" or kind == "number" then
      return answer(texts.gsub(text, pattern, replacement, most))
    elseif kind ~= "table" and kind ~= "function" then
      error("bad argument #3 to 'gsub' (string/function/table expected, got " .. kind .. ")", 2)
    end
    local pieces = answer(texts.pieces(text, pattern, most))
    local count = 0
    -- A piece is a text, or a match: its whole text and its captures.
    for i = 1, #pieces do
      local piece = pieces[i]
      if type(piece) == "table" then
        count = count + 1
        local value
        if kind == "table" then
          value = replacement[piece[2]]
        else
          value = replacement(library.unpack(piece, 2))
        end
        if not value then
          value = piece[1]
        elseif type(value) ~= "string" and type(value) ~= "number" then
          error("invalid replacement value (a " .. type(value) .. ")", 2)
        end
        pieces[i] = value
      end
    end
    return library.concat(pieces), count
  end
  globals.string = strings
  loaded.string = strings
end
