-- The load, for wrk. Arguments: what to send (read, charge, replay), the prefix of the order ids, the caller's key,
-- how many charges were prepared for the replay, and a charge's body before and after its order id.
-- A read and a charge never name an order twice, so that nobody can answer from memory; a replay always does.

local kind, prefix, key, prepared, body_head, body_tail
local sent = 0
local threads = {}

wrong = 0 -- answers that were not what was asked for; global, so that done() can fetch it from the thread

function setup(thread)
    table.insert(threads, thread)
end

function init(args)
    kind, prefix, key, prepared, body_head, body_tail = args[1], args[2], args[3], tonumber(args[4]), args[5], args[6]
end

local function read(order_id)
    return "GET /gateway/api/payments/" .. order_id .. " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " .. key
        .. "\r\n\r\n"
end

local function charge(order_id)
    local body = body_head .. order_id .. body_tail
    return "POST /gateway/api/payments/charge HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " .. key
        .. "\r\nContent-Type: application/json\r\nIdempotency-Key: " .. order_id .. "\r\nContent-Length: " .. #body
        .. "\r\n\r\n" .. body
end

function request()
    sent = sent + 1
    if kind == "read" then
        return read(prefix .. sent)
    elseif kind == "replay" then
        return charge(prefix .. (sent % prepared))
    end
    return charge(prefix .. sent)
end

local function is_replayed(headers)
    for name, value in pairs(headers) do
        if name:lower() == "idempotent-replayed" then
            return value == "true"
        end
    end
    return false
end

function response(status, headers, body)
    local is_right = status == 200 and body:find('"status"%s*:%s*1%D') ~= nil
    if is_right and kind == "replay" then
        is_right = is_replayed(headers)
    elseif is_right and kind == "charge" then
        is_right = not is_replayed(headers)
    end
    if not is_right then
        if wrong == 0 then
            io.stderr:write("first wrong answer: ", status, " ", body:sub(1, 300), "\n")
        end
        wrong = wrong + 1
    end
end

function done(summary, latency)
    local all_wrong = 0
    for _, thread in ipairs(threads) do
        all_wrong = all_wrong + thread:get("wrong")
    end
    local errors = summary.errors
    io.write(string.format(
        'RESULT {"duration_us":%.0f,"requests":%d,"p50_us":%.0f,"p99_us":%.0f,"wrong":%d,"broken":%d,"timeouts":%d}\n',
        summary.duration, summary.requests, latency:percentile(50), latency:percentile(99), all_wrong,
        errors.connect + errors.read + errors.write, errors.timeout))
end
