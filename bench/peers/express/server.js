// As in ../surus/app.php.
import session from 'cookie-session';
import cors from 'cors';
import express from 'express';
import { rateLimit } from 'express-rate-limit';
import jwt from 'jsonwebtoken';
import { z } from 'zod';

const text = (min, max) => z.string().min(min).max(max);
const Order = z.object({
  customer: z.object({
    name: text(1, 50),
    email: z.email(),
    address: z.object({ street: text(1, 100), city: text(1, 50), zip: z.string().regex(/^[0-9]{5}$/) }),
    age: z.int().nullable().optional(),
  }),
  items: z.array(z.object({
    sku: text(3, 20),
    title: text(1, 100),
    quantity: z.int().min(1).max(1000),
    price: z.number().min(0),
  })).min(1).max(2000),
  priority: z.enum(['low', 'normal', 'high']).default('normal'),
  tags: z.array(text(0, 20)).max(10).default([]),
  note: text(0, 500).nullable().optional(),
});

const app = express();
app.disable('x-powered-by');
app.disable('etag');
app.post('/orders', express.json({ limit: '1mb' }), (request, response) => {
  const { success, data, error } = Order.safeParse(request.body);
  if (!success) {
    return response.status(422).type('application/problem+json')
      .send(JSON.stringify({ title: 'Unprocessable Content', status: 422, errors: error.issues }));
  }
  const total = data.items.reduce((sum, item) => sum + item.quantity * item.price, 0);
  return response.json({ customer: data.customer.email, items: data.items.length, total });
});

const sessions = session({ name: 'session', keys: ['s'.repeat(32)] });
const token = (request, response, next) => {
  try {
    const value = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    request.claims = jwt.verify(value, 'k'.repeat(32), { algorithms: ['HS256'], issuer: 'https://issuer.example', audience: 'api' });
  } catch {
    return response.sendStatus(401);
  }
  return next();
};
app.get('/login', sessions, (request, response) => {
  request.session.user = 'ann';
  response.json({ in: true });
});
app.get(
  '/account',
  cors({ origin: 'https://app.example', credentials: true }),
  sessions,
  token,
  rateLimit({ limit: 1_000_000_000, windowMs: 60_000, standardHeaders: 'draft-6', legacyHeaders: false }),
  (request, response) => response.json({ session: request.session.user, token: request.claims.sub }),
);

for (let i = 0; i < Number(process.env.ROUTES ?? 0); i++) {
  app.get(`/group${i % 100}/item${i}/:id`, (request, response) => response.json({ route: i, id: request.params.id }));
}
app.listen(Number(process.env.PORT), '127.0.0.1');
