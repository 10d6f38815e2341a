-- A mixed load for wrk. Each thread walks through the kinds of requests, with names that vary.
-- Arguments: "coroutine" or "classic", then "fatal" for requests that retire their isolate.

local threads = {}
local kinds = {}

local function get(path)
  return function() return wrk.format("GET", path()) end
end

local function post(path, type, body)
  return function() return wrk.format("POST", path, {["Content-Type"] = type}, body()) end
end

local number = 0
local function name() return "n" .. (number % 997) end

function setup(thread)
  table.insert(threads, thread)
end

function init(arguments)
  answered, failed, strange = 0, 0, 0
  local static = {"/json", "/echo", "/exception", "/park", "/cycle", "/fiber", "/exit", "/stream", "/shutdown"}
  for _, path in ipairs(static) do
    table.insert(kinds, get(function() return path end))
  end
  table.insert(kinds, get(function() return "/users/" .. name() end))
  table.insert(kinds, get(function() return "/get?name=" .. name() end))
  table.insert(kinds, get(function() return "/park-state?name=" .. name() end))
  table.insert(kinds, get(function() return "/session?id=" .. name() end))
  table.insert(kinds, post("/form", "application/x-www-form-urlencoded", function() return "name=" .. name() .. "&list[]=1&list[]=2" end))
  table.insert(kinds, post("/body", "text/plain", function() return "ok " .. string.rep(name(), 100) end))
end

function request()
  number = number + 1
  return kinds[number % #kinds + 1]()
end

function response(status, headers, body)
  if status == 200 and (body:find("ok") or body:find("OK") or body:find('"id"')) then
    answered = answered + 1
  elseif status == 500 then
    failed = failed + 1
  else
    strange = strange + 1
    if strange < 5 then io.stderr:write("strange: ", status, " ", body:sub(1, 200), "\n") end
  end
end

function done(summary, latency, requests)
  local answered, failed, strange = 0, 0, 0
  for _, thread in ipairs(threads) do
    answered = answered + thread:get("answered")
    failed = failed + thread:get("failed")
    strange = strange + thread:get("strange")
  end
  local e = summary.errors
  io.write(string.format("RESULT %d %d %d %d\n", answered, failed, strange, e.connect + e.read + e.write + e.timeout))
end
