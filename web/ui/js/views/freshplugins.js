// The plugins as the server has them, asked for anew where a view opens or the server is back.
import { useEffect } from '../html.js'
import { plugins, refreshPlugins, server } from '../store.js'

export function useFreshPlugins() {
  const online = server.value.state === 'online'
  useEffect(() => {
    if (!online) return undefined
    const control = new AbortController()
    refreshPlugins(control.signal)
    return () => control.abort()
  }, [online])
  return plugins.value
}
