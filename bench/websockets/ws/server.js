// The same as app.php, with Node's ws.
import { WebSocketServer } from 'ws';

const server = new WebSocketServer({ host: '127.0.0.1', port: Number(process.env.PORT), perMessageDeflate: false });
const room = new Set();

server.on('connection', (socket, request) => {
  if (request.url === '/room') {
    room.add(socket);
    socket.on('close', () => room.delete(socket));
    socket.on('message', (message) => {
      for (const other of room) {
        other.send(message, { binary: false });
      }
    });
  } else {
    socket.on('message', (message, binary) => socket.send(message, { binary }));
  }
});
