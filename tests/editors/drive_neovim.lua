-- Drives Neovim, without a screen, through diagnostics, hover and a quick fix; writes what it saw as JSON.
-- The environment names the program to start (GRADSIGHT_SERVER), the file to open and the file for the answer.

local seen = { steps = {} }

local function finish(code)
  local out = assert(io.open(vim.env.GRADSIGHT_ANSWER, "w"))
  out:write(vim.fn.json_encode(seen))
  out:close()
  vim.cmd(code == 0 and "qall!" or "cquit " .. code)
end

local function wait(what, condition)
  if not vim.wait(60000, condition, 20) then
    seen.failed = what
    finish(1)
  end
  table.insert(seen.steps, what)
end

local function run()
  seen.version = tostring(vim.version().major) .. "." .. tostring(vim.version().minor)
  vim.cmd("edit " .. vim.fn.fnameescape(vim.env.GRADSIGHT_FILE))
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  local client = vim.lsp.start_client({
    name = "gradsight",
    cmd = vim.fn.json_decode(vim.env.GRADSIGHT_SERVER),
    root_dir = vim.fn.fnamemodify(vim.env.GRADSIGHT_FILE, ":h"),
    capabilities = capabilities,
  })
  vim.lsp.buf_attach_client(0, client)
  wait("diagnostics", function() return #vim.diagnostic.get(0) == 1 end)
  local found = vim.diagnostic.get(0)[1]
  seen.diagnostic = { line = found.lnum + 1, column = found.col, message = found.message, code = found.code }

  -- Hover: the handler is replaced by one that keeps what was said.
  local said
  local params = vim.lsp.util.make_position_params(0, "utf-16")
  vim.api.nvim_win_set_cursor(0, { found.lnum + 1, found.col })
  params = vim.lsp.util.make_position_params(0, "utf-16")
  vim.lsp.buf_request(0, "textDocument/hover", params, function(_, result)
    said = result and result.contents and result.contents.value or ""
  end)
  wait("hover", function() return said ~= nil end)
  seen.hover = said

  -- Code action: the menu is answered by taking the entry that mentions the fix.
  local offered
  vim.ui.select = function(items, options, choose)
    offered = {}
    local chosen
    for _, item in ipairs(items) do
      local action = item.action or item[2]
      table.insert(offered, action.title)
      if action.title:find("replace with `y = y", 1, true) and action.kind == "quickfix" then chosen = chosen or item end
    end
    choose(chosen, 1)
  end
  vim.lsp.buf.code_action()
  wait("menu", function() return offered ~= nil end)
  seen.actions = offered
  wait("fixed", function()
    return vim.api.nvim_buf_get_lines(0, found.lnum, found.lnum + 1, false)[1]:find("y = y %* 3") ~= nil
  end)
  wait("clean", function() return #vim.diagnostic.get(0) == 0 end)
  vim.cmd("write")
  vim.lsp.stop_client(client)
  wait("stopped", function() return vim.lsp.get_client_by_id(client) == nil end)
  finish(0)
end

local ok, problem = pcall(run)
if not ok then
  seen.failed = tostring(problem)
  finish(1)
end
