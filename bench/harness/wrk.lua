-- Sends the requests of a file that the harness wrote, round and round, and prints the result as one line of JSON.
-- The file holds batches separated by zero bytes; a batch is what is sent in one write (16 requests when pipelined).

local batches = {}

function init()
   local file = assert(io.open(os.getenv("BENCH_REQUESTS"), "rb"))
   for batch in file:read("*a"):gmatch("[^%z]+") do
      batches[#batches + 1] = batch
   end
   file:close()
   if #batches == 1 then
      -- Without a global `request` wrk formats once and then sends without entering Lua.
      wrk.format = function() return batches[1] end
      return
   end
   local at = 0
   function request()
      at = at % #batches + 1
      return batches[at]
   end
end

function done(summary, latency)
   local e = summary.errors
   io.write(string.format(
      'BENCH {"requests":%d,"microseconds":%d,"bytes":%d,"p50":%d,"p99":%d,' ..
      '"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}\n',
      summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
      e.connect, e.read, e.write, e.status, e.timeout))
end
