-- Where the installed Neovim is older than 0.11: `vim.lsp.config` and `vim.lsp.enable` as its manual describes them.

if not vim.lsp.enable then
  local known = {}

  vim.lsp.config = function(name, config) known[name] = config end

  local function root_of(path, markers)
    local folder = vim.fn.fnamemodify(path, ":p:h")
    while folder ~= "/" do
      for _, marker in ipairs(markers) do
        if vim.fn.filereadable(folder .. "/" .. marker) + vim.fn.isdirectory(folder .. "/" .. marker) > 0 then
          return folder
        end
      end
      folder = vim.fn.fnamemodify(folder, ":h")
    end
  end

  vim.lsp.enable = function(name)
    local config = assert(known[name], "enabled before it is configured")
    vim.api.nvim_create_autocmd("FileType", {
      pattern = config.filetypes,
      callback = function(event)
        local client = vim.lsp.start_client({
          name = name,
          cmd = config.cmd,
          init_options = config.init_options,
          root_dir = root_of(event.file, config.root_markers),
        })
        vim.lsp.buf_attach_client(event.buf, client)
      end,
    })
  end
end
