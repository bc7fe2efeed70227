-- A gateway that answers at once, in PayHere's shapes, and echoes what it was asked, because a relay compares.
-- It does no more than that: no state but two counts, so that it is never what limits a measurement.
-- The bodies are the bench's own, flat and without escapes, so that patterns do instead of a JSON parser.

local gateway = {}

local charges, reads = 0, 0
local FIRST_PAYMENT_ID = 320025000000 -- the real ones have 12 digits and begin with 3200

local match, format = string.match, string.format

local TOKEN = '{"access_token":"cb5c47fd-741c-489a-b69e-fd73155ca34e","token_type":"bearer","expires_in":599,"scope":"SANDBOX"}'

local function answer(text)
    ngx.header["Content-Type"] = "application/json"
    ngx.header["Content-Length"] = #text
    ngx.print(text)
end

function gateway.token()
    ngx.req.read_body()
    answer(TOKEN)
end

function gateway.charge()
    ngx.req.read_body()
    local body = ngx.req.get_body_data() or ""
    local order = match(body, '"order_id"%s*:%s*("[^"]*")')
    local items = match(body, '"items"%s*:%s*("[^"]*")')
    local currency = match(body, '"currency"%s*:%s*("[^"]*")')
    local amount = match(body, '"amount"%s*:%s*"?([%d.]+)')
    if not (order and items and currency and amount) then
        return answer('{"status":-1,"msg":"Invalid amount","data":null}')
    end
    charges = charges + 1
    answer('{"status":1,"msg":"Automatic payment charged successfully","data":{"order_id":' .. order
        .. ',"items":' .. items .. ',"currency":' .. currency .. ',"amount":' .. amount
        .. ',"custom_1":null,"custom_2":null,"payment_id":' .. format("%.0f", FIRST_PAYMENT_ID + charges)
        .. ',"status_code":2,"status_message":"Successfully completed the test tokenized payment.",'
        .. '"md5sig":"A098FEBCC06293734641770555B4D569","authorization_token":null}}')
end

function gateway.search()
    reads = reads + 1
    local order = ngx.var.arg_order_id or ngx.var.order_id_in_path
    answer('{"status":1,"msg":"Payments with order_id:' .. order .. '","data":[{"payment_id":320025071278,"order_id":"'
        .. order .. '","date":"2026-01-16 16:21:02","description":"Taxi Hire 123","status":"RECEIVED","currency":"LKR",'
        .. '"amount":345.67,"customer":{"fist_name":"Saman","last_name":"Perera","email":"saman@example.com",'
        .. '"phone":"+94771234567","delivery_details":{"address":"No. 1, Galle Road","city":"Colombo",'
        .. '"country":"Sri Lanka"}},"amount_detail":{"currency":"LKR","gross":345.67,"fee":11.41,"net":334.26,'
        .. '"exchange_rate":1,"exchange_from":"LKR","exchange_to":"LKR"},"payment_method":{"method":"VISA",'
        .. '"card_customer_name":"S Perera","card_no":"************1234"},"items":null}]}')
end

function gateway.counts()
    answer('{"charges":' .. charges .. ',"reads":' .. reads .. '}')
end

return gateway
