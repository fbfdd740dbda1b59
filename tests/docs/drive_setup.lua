-- Waits for the set-up of the manual to show a finding, probes it, and writes what was seen as JSON.

local seen = {}

local function finish(code)
  local out = assert(io.open(vim.env.GRADSIGHT_ANSWER, "w"))
  out:write(vim.fn.json_encode(seen))
  out:close()
  vim.cmd(code == 0 and "qall!" or "cquit " .. code)
end

local function wait(what, condition)
  if vim.wait(90000, condition, 20) then return end
  seen.failed = what
  finish(1)
end

local function message() return (vim.diagnostic.get(0)[1] or {}).message or "" end

local ok, problem = pcall(function()
  wait("a finding", function() return message() ~= "" end)
  seen.found = message()
  local client = (vim.lsp.get_clients or vim.lsp.get_active_clients)()[1]
  seen.options = client.config.init_options
  if vim.fn.exists(":GradSightProbe") == 2 then
    vim.cmd("GradSightProbe")
    wait("a verdict", function() return message():find("confirmed") ~= nil end)
    seen.verdict = message()
  end
  vim.cmd("edit other.py")
  seen.servers = #(vim.lsp.get_clients or vim.lsp.get_active_clients)()
  finish(0)
end)
if not ok then
  seen.failed = tostring(problem)
  finish(1)
end
