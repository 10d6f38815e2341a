<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title><?= $e($title) ?></title>
<h1><?= $e($title) ?></h1>
<ul>
<?php foreach ($notes as $note): ?>
  <li><?= $e($note['text']) ?></li>
<?php endforeach ?>
</ul>
<form method="post" action="/">
  <?= $field ?>
  <input name="text" aria-label="A note" required>
  <button>Add</button>
</form>
</html>
